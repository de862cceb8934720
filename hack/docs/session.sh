# What a session of documentation needs besides the blocks themselves, which are sourced unchanged. Variables of its own begin with
# two underscores. $__work: folder for what the runner reads: progress (when which block began) and failure.
set -Eeuo pipefail
__pids=()
__logs=()
__trap='printf "%s:%s: %s\n" "${BASH_SOURCE[0]#"$__work"/blocks/*/}" "$LINENO" "$BASH_COMMAND" >>"$__work/failure"'
trap "$__trap" ERR

__at() { # PLACE
  printf '%s %s\n' "$EPOCHREALTIME" "$1" >>"$__work/progress"
  printf '== %s\n' "$1"
}

__fail() { # TEXT
  trap - ERR
  printf '%s\n' "$1" >>"$__work/failure"
  exit 1
}

__background() { # PLACE FILE TEXT
  local log="$__work/background-${#__pids[@]}" deadline=$((SECONDS + 120))
  : >"$log"
  # Job control gives it a process group of its own, so that it can be interrupted as a terminal does it.
  set -m
  (
    trap - ERR
    source "$2"
  ) >"$log" 2>&1 </dev/null &
  set +m
  __pids+=($!)
  __logs+=("$log")
  until grep -qF -- "$3" "$log"; do
    kill -0 "${__pids[-1]}" 2>/dev/null || __fail "$1: it ended, and never printed: $3"$'\n'"$(tail -n 30 "$log")"
    ((SECONDS < deadline)) || __fail "$1: it did not print within two minutes: $3"$'\n'"$(tail -n 30 "$log")"
    sleep 0.1
  done
}

__interrupt() { # PLACE
  local i deadline
  for i in "${!__pids[@]}"; do
    kill -INT -- "-${__pids[i]}" 2>/dev/null || __fail "$1: a background block had ended by itself"$'\n'"$(tail -n 30 "${__logs[i]}")"
    deadline=$((SECONDS + 30))
    while kill -0 "${__pids[i]}" 2>/dev/null; do
      ((SECONDS < deadline)) || __fail "$1: a background block did not end within 30 s of Ctrl-C"$'\n'"$(tail -n 30 "${__logs[i]}")"
      sleep 0.1
    done
    wait "${__pids[i]}" || true
  done
  __pids=()
  __logs=()
}

__expect() { # PLACE CODE FILE
  local code
  set +e
  trap - ERR
  (
    set -e
    source "$3"
  )
  code=$?
  set -e
  trap "$__trap" ERR
  ((code == $2)) || __fail "$1: it ended with $code instead of $2"
}
