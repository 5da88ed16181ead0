# A machine of its own for upgrades: directories in which an installation writes are over those of this one, it sees its
# own processes alone, and a script stands in for systemd. Arguments: a scratch directory, the repository for
# node_modules, and that script.
set -e
mount -t tmpfs tmpfs "$1"
chmod 755 "$1"
for directory in /etc /opt /usr/local /var/lib; do
  over=$1/$(echo "$directory" | tr / _)
  mkdir "$over" "$over/upper" "$over/work"
  mount -t overlay overlay -o "lowerdir=$directory,upperdir=$over/upper,workdir=$over/work" "$directory"
done
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/systemd/system /run/stand-in /etc/platform /opt/platform /usr/local/bin
ln -s "$2/node_modules" /opt/platform/node_modules
cp "$3" /usr/local/bin/systemctl
printf '#!/bin/sh\ntail -n 20 /run/stand-in/platform.log 2>/dev/null\n' >/usr/local/bin/journalctl
chmod 755 /usr/local/bin/systemctl /usr/local/bin/journalctl
echo ready
# The first process: a shell takes away what has ended and has no parent. A power cut of a test kills what it waits for.
while :; do sleep 3600 || :; done
