#!/bin/sh
# Runs tests as an ordinary user, as root: tools/scripts/test-as-user.sh USER [arguments of npm test]
# The user gets a copy of the tree, node_modules included, in a temporary directory of its own.
set -eu
[ $# -ge 1 ] || { echo "usage: $0 USER [arguments of npm test]" >&2; exit 2; }
user=$1; shift
copy=$(mktemp -d /tmp/platform-tests-XXXXXX)
trap 'rm -rf "$copy"' EXIT
cd "$(dirname "$0")/.."
git ls-files -z --cached --others --exclude-standard | xargs -0 cp -P --parents -t "$copy" --
cp -a node_modules "$copy/"
chown -Rh "$user": "$copy"
cd "$copy"
setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups --reset-env \
  env PATH="$PATH" CI="${CI:-}" npm test -- "$@"
