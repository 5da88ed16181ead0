#!/bin/sh
# without_disks.sh COMMAND...: runs it in a mount namespace just made, without the disks that other tests have mounted
# (but for $KEEP). Where this machine does not share its mounts, copies would keep them in use until the command ends.
sed -n 's#^/dev/loop[0-9]* \([^ ]*\) .*#\1#p' /proc/mounts | sort -r | while read -r point; do
  [ "$point" = "${KEEP-}" ] || umount "$point" || :
done
exec "$@"
