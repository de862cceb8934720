#!/usr/bin/env bash
# Fills ROOT with the file system of a node: Debian, kind's own node files, Kubernetes and containerd from PROGRAMS.
# Usage: rootfs.sh ROOT KIND_FILES PROGRAMS MIRROR DEB_CACHE     (as root)
set -euo pipefail

root=$1 kind_files=$2 programs=$3 mirror=$4 debs=$5
packages=(
  systemd conntrack iptables nftables iproute2 ethtool util-linux mount kmod libseccomp2 pigz bash ca-certificates curl jq procps runc e2fsprogs
)
components=(kube-apiserver kube-controller-manager kube-scheduler kube-proxy)

debootstrap --variant=minbase --cache-dir="$debs" --include="$(IFS=,; echo "${packages[*]}")" bookworm "$root" "$mirror"
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,locale,man,info}/* "$root"/var/log/*.log

cp -r --no-preserve=mode "$kind_files"/{etc,kind,usr} "$root/"
chmod 755 "$root"/usr/local/bin/* "$root"/kind/bin/*
mkdir -p "$root"/opt/cni/bin "$root"/kind/manifests "$root"/etc/kubernetes/manifests

cp -L "$programs"/{containerd,ctr,containerd-shim-runc-v2,crictl} "$root/usr/local/bin/"
cp -L "$programs"/{host-local,loopback,ptp,portmap} "$root/opt/cni/bin/"
cp -L "$programs/kube" "$root/usr/bin/kube"
for name in kubelet kubeadm kubectl; do ln -s kube "$root/usr/bin/$name"; done
# Where the official images of these have them; kube-proxy is called by this path.
for name in "${components[@]}"; do ln -s /usr/bin/kube "$root/usr/local/bin/$name"; done

# A container has no devices, mounts and consoles to set up at boot.
wants=$root/lib/systemd/system
rm -f "$wants/sysinit.target.wants/systemd-tmpfiles-setup.service" "$wants"/multi-user.target.wants/* "$wants"/local-fs.target.wants/* \
  "$wants"/sockets.target.wants/*{udev,initctl}* "$wants"/basic.target.wants/* "$root"/etc/systemd/system/*.wants/*
echo ReadKMsg=no >>"$root/etc/systemd/journald.conf"
ln -sf /usr/lib/systemd/systemd "$root/sbin/init"
chroot "$root" systemctl enable --quiet kubelet.service containerd.service undo-mount-hacks.service
# It would register formats with the kernel of the whole machine.
chroot "$root" systemctl mask --quiet systemd-binfmt.service

# containerd's own default, with kind's hook, and without limits that a node may not be allowed to raise.
"$programs/ctr" oci spec |
  jq '.hooks.createContainer += [{"path": "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' >"$root/etc/containerd/cri-base.json"
