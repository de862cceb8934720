{{- define "grovekeeper.labels" -}}
app.kubernetes.io/name: grovekeeper
app.kubernetes.io/part-of: grovekeeper
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.extraLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "grovekeeper.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* Where the leases are: both processes use the same namespace. */ -}}
{{- define "grovekeeper.leaseNamespace" -}}
{{ dig "leaderElection" "resourceNamespace" "" .Values.config | default .Release.Namespace }}
{{- end }}

{{- define "grovekeeper.leaseName" -}}
{{ dig "leaderElection" "resourceName" "" .Values.config | default "grove-operator-leader-election" }}
{{- end }}

{{- /* Values that do not fit together, found before anything is made of them. */ -}}
{{- define "grovekeeper.check" -}}
{{- $default := dig "scheduler" "defaultProfileName" "default-scheduler" .Values.config }}
{{- if and (not .Values.scheduler.enabled) (eq $default "grovekeeper-scheduler") }}
{{- fail "scheduler.enabled is false, but config.scheduler.defaultProfileName is grovekeeper-scheduler: name the scheduler that places gangs instead, for example kai-scheduler, and list it in config.scheduler.profiles" }}
{{- end }}
{{- end }}
