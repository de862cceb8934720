# Run in a container of the node's base: loads /images.tar into containerd's store and gives each image the names that kubeadm expects.
# Reads lines of a loaded image and a name.
containerd >/tmp/containerd.log 2>&1 &
daemon=$!
for _ in $(seq 120); do
  ctr version >/dev/null 2>&1 && break
  sleep 0.5
done
images=(ctr --namespace k8s.io images)
"${images[@]}" import --no-unpack --digests /images.tar >/dev/null
while read -r loaded name; do
  "${images[@]}" tag --force "docker.io/library/$loaded:latest" "$name" >/dev/null
done
for name in $("${images[@]}" ls --quiet | grep -E '^(docker\.io/library/grovekeeper-|import-)'); do
  "${images[@]}" rm "$name" >/dev/null
done
kill $daemon
wait $daemon || true
