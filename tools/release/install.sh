#!/bin/sh
# Installs this release on Debian 12 or 13, as root: unpack the archive, then run its install.sh.
set -eu

PREFIX=/opt/platform
CONFIG=/etc/platform
DATA=/var/lib/platform-api
UNIT=/etc/systemd/system/platform.service
UPGRADE_UNIT=/etc/systemd/system/platform-upgrade.service
# What isolates applications from each other and from the host.
PACKAGES='git bubblewrap iproute2 nftables e2fsprogs ca-certificates'

usage() {
  cat <<END
usage: install.sh [--no-packages] [--no-start] [--listen ADDRESS]
       install.sh --uninstall [--purge $DATA]

Installs the platform in $PREFIX, with settings in $CONFIG/platform.env and data in $DATA.
Called again, it changes only what differs. To a newer release leads \`platform upgrade\`.

  --no-packages   do not install Debian packages ($PACKAGES)
  --no-start      do not start the service
  --listen IP     a new installation answers at http://IP:8080, without encryption, until \`platform setup\`.
                  Without it, only this machine reaches it.
  --uninstall     stop the platform and its applications, and remove it. Data and settings stay.
  --purge DIR     with --uninstall: remove the data, too. DIR must be the directory of the data.
END
}

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

packages=1 start=1 uninstall= purge= units= listen=
while [ $# -gt 0 ]; do
  case $1 in
    --no-packages) packages= ;;
    --no-start) start= ;;
    --uninstall) uninstall=1 ;;
    --listen)
      case ${2-} in
        *[!0-9a-fA-F.:]* | '' | 0.0.0.0 | ::) fail '--listen needs an IP address of this machine' ;;
      esac
      listen=$2
      shift
      ;;
    # Of `platform upgrade`: the units of this release, and nothing else.
    --units) units=1 ;;
    --purge)
      [ $# -gt 1 ] || fail '--purge needs the directory of the data'
      purge=$2
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" = 0 ] || fail 'run it as root: it makes a user, directories and a unit of systemd'
systemd=
[ ! -d /run/systemd/system ] || systemd=1

# setting NAME DEFAULT: as the service reads the file of settings.
setting() {
  node=$PREFIX/current/bin/node value=
  [ -x "$node" ] || node=$here/bin/node
  [ ! -r "$CONFIG/platform.env" ] ||
    value=$(env -u "$1" "$node" --env-file="$CONFIG/platform.env" -p "process.env.$1 ?? ''")
  echo "${value:-$2}"
}

# remove_networks DATA: those of projects, which the kernel would keep until the machine starts anew. Their names are
# made of their directory (drivers/network/network_directory.ts).
remove_networks() {
  directory=$(realpath -e "$1/runtime/networks" 2>/dev/null) || return 0
  tag=$(printf %s "$directory" | sha256sum | cut -c 1-6)
  ip netns list 2>/dev/null | awk -v of="platform-$tag-" 'index($1, of) == 1 { print $1 }' | while read -r network; do
    ip netns delete "$network" || true
  done
  ip -o link 2>/dev/null | sed -n "s/^[0-9]*: \(pl$tag[^@:]*\).*/\1/p" | while read -r link; do
    ip link delete "$link" 2>/dev/null || true
  done
  nft delete table inet "platform_$tag" 2>/dev/null || true
}

# left DATA: processes that outlive the service: what runs with the Node.js of a release, and applications, by what
# watches over them and by their control groups, which may be beside that of the service (drivers/runtime/cgroup.ts).
# Paths alone say nothing: a container on this machine may have the same.
left() {
  for exe in /proc/[0-9]*/exe; do
    for node in "$PREFIX"/*/bin/node; do
      [ ! "$exe" -ef "$node" ] || pid_of "$exe"
    done
  done
  printf '%s\n' "$1/runtime/units/" | grep -lsFf - /proc/[0-9]*/cmdline | while read -r file; do
    [ ! "${file%cmdline}root" -ef / ] || pid_of "$file"
  done
  for unit in "$1"/runtime/units/*/; do
    name=$(basename "$unit")
    cat /sys/fs/cgroup/platform/"$name"/cgroup.procs /sys/fs/cgroup/*/platform/"$name"/cgroup.procs 2>/dev/null || true
  done
}

# pid_of FILE of /proc
pid_of() {
  pid=${1#/proc/}
  echo "${pid%%/*}"
}

# stop_all DATA: applications outlive the service; here they end with it.
stop_all() {
  if [ -n "$systemd" ] && [ -e "$UNIT" ]; then
    mkdir -p "/run/systemd/system/$(basename "$UNIT").d"
    printf '[Service]\nKillMode=mixed\n' >"/run/systemd/system/$(basename "$UNIT").d/uninstall.conf"
    systemctl daemon-reload
    systemctl disable --quiet --now platform.service platform-upgrade.service
    rm -r "/run/systemd/system/$(basename "$UNIT").d"
  fi
  turn=0
  while [ $turn -lt 50 ]; do
    pids=$(left "$1")
    [ -n "$pids" ] || return 0
    # shellcheck disable=SC2086 -- a list of numbers
    kill -KILL $pids 2>/dev/null || true
    turn=$((turn + 1))
    sleep 0.1
  done
}

remove() {
  data=$(setting PLATFORM_DATA_DIR "$DATA")
  [ -z "$purge" ] || [ "$purge" = "$data" ] || fail "the data are in $data, not in $purge: nothing was removed"
  stop_all "$data"
  remove_networks "$data"
  rm -f "$UNIT" "$UPGRADE_UNIT" /usr/local/bin/platform /usr/local/bin/svc
  [ -z "$systemd" ] || systemctl daemon-reload
  rm -rf "$PREFIX"
  if [ -n "$purge" ]; then
    awk -v data="$data/" 'index($2, data) == 1 { print $2 }' /proc/mounts | sort -r | while read -r mount; do
      umount -l "$mount" || true
    done
    rm -rf "$data" "$CONFIG"
    userdel platform 2>/dev/null || true
    echo "Removed, with its data in $data and its settings in $CONFIG."
  else
    echo "Removed. Its data are still in $data, its settings in $CONFIG."
  fi
}

if [ -n "$uninstall" ]; then
  remove
  exit 0
fi
[ -z "$purge" ] || fail '--purge needs --uninstall'
[ -x "$here/bin/node" ] && [ -f "$here/VERSION" ] || fail "$here is no unpacked release"
version=$(cat "$here/VERSION")
# Of a download that was cut short or damaged, and on a disk that was full, tar leaves a part.
[ -n "$units" ] || (cd "$here" && sha256sum --check --strict --status FILES 2>/dev/null) ||
  fail "$here is not the whole release: remove it, download the archive again, and unpack it where there is room"
"$here/bin/node" --version >/dev/null 2>&1 || fail "this release is for another processor than $(uname -m)"

# What the service runs is replaced by `platform upgrade` alone, which backs up, watches, and goes back where it fails.
# Releases that have no such command have no unit for it.
installed=$(readlink "$PREFIX/current" 2>/dev/null || true)
if [ -n "$systemd" ] && [ -z "$units" ] && [ -e "$UPGRADE_UNIT" ] && [ "${installed:-$version}" != "$version" ]; then
  fail "platform $installed is installed: to go to $version, give \`platform upgrade\` the archive of this release"
fi

missing() {
  for package in $PACKAGES; do
    case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in *' installed') ;; *) echo "$package" ;; esac
  done
}

install_packages() {
  absent=$(missing | tr '\n' ' ')
  [ -n "$absent" ] || return 0
  command -v apt-get >/dev/null || fail "this is no Debian: install $absent by hand, and run it with --no-packages"
  echo "Installing $absent"
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086 -- a list of words
  apt-get -q update >/dev/null && apt-get -q install -y --no-install-recommends $absent >/dev/null ||
    fail "apt-get could not install $absent: see above; --no-packages goes on without them"
}

# Copied beside, and moved there whole: a disk that is full or a kill leaves what runs as it is.
install_files() {
  if [ "$(cat "$PREFIX/$version/VERSION" 2>/dev/null)" = "$version" ] &&
    cmp -s "$here/RELEASE" "$PREFIX/$version/RELEASE"; then return 0; fi
  mkdir -p "$PREFIX"
  rm -rf "$PREFIX/.new"
  # A full disk is said of each file.
  said=$(cp -a "$here" "$PREFIX/.new" 2>&1) || {
    rm -rf "$PREFIX/.new"
    fail "the release could not be copied to $PREFIX, and nothing was changed: $(echo "$said" | head -n 1)"
  }
  chown -R root:root "$PREFIX/.new"
  # A power cut leaves it whole under its name, or not at all.
  sync --file-system "$PREFIX/.new"
  rm -rf "$PREFIX/.old"
  [ ! -e "$PREFIX/$version" ] || mv "$PREFIX/$version" "$PREFIX/.old"
  mv "$PREFIX/.new" "$PREFIX/$version"
  rm -rf "$PREFIX/.old"
  changed=1
}

link_version() {
  if [ "$(readlink "$PREFIX/current" 2>/dev/null)" != "$version" ]; then
    # Over one that a kill has left, which would be followed.
    ln -sfn "$version" "$PREFIX/.current"
    mv -T "$PREFIX/.current" "$PREFIX/current"
    changed=1
  fi
  for command in platform svc; do ln -sfn "$PREFIX/current/bin/$command" "/usr/local/bin/$command"; done
}

make_settings() {
  id platform >/dev/null 2>&1 ||
    useradd --system --user-group --no-create-home --home-dir "$DATA" --shell /usr/sbin/nologin platform
  mkdir -p "$CONFIG" "$DATA"
  # Its own directories are closed; programs of other users pass through to what is theirs.
  chmod 711 "$DATA"
  if [ -e "$CONFIG/platform.env" ]; then
    [ -z "$listen" ] || [ "$(setting HOST '')" = "$listen" ] ||
      fail "there are settings already: --listen is for a new installation; set HOST=$listen in $CONFIG/platform.env"
    return 0
  fi
  (
    umask 077
    # One that a kill has left keeps its mode.
    rm -f "$CONFIG/platform.env.new"
    cat >"$CONFIG/platform.env.new" <<END
# Settings of the platform: \`platform start --help\` lists all. Restart it after a change.
PLATFORM_DATA_DIR=$DATA
# Runs the embedded PostgreSQL.
PLATFORM_POSTGRES_USER=platform
END
    # The same words as in server/setup/settings_text.ts: a domain takes the place of the address.
    [ -z "$listen" ] || cat >>"$CONFIG/platform.env.new" <<END
# Written by \`platform setup\`, which replaces these lines:
HOST=$listen
# End of what \`platform setup\` has written.
END
  )
  mv "$CONFIG/platform.env.new" "$CONFIG/platform.env"
}

# No option that gives the service a mount namespace of its own (Protect*, Private*): disks that it mounts are used by
# programs that outlive it. No option that programs of applications would inherit as a filter of system calls.
unit() {
  cat <<END
[Unit]
Description=Hosting platform
Documentation=file://$PREFIX/current/app/CHANGELOG.md
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
ExecStart=$PREFIX/current/bin/platform start
WorkingDirectory=/
# Applications and the ingress serve on while the service restarts.
KillMode=process
Restart=always
RestartSec=1
TimeoutStopSec=60
Delegate=yes
OOMPolicy=continue
LimitNOFILE=1048576
TasksMax=infinity
KeyringMode=private

[Install]
WantedBy=multi-user.target
END
}

# Carries out what `platform upgrade` has written down: beside its caller's session, and after a power cut, too.
upgrade_unit() {
  cat <<END
[Unit]
Description=Upgrade of the hosting platform
After=platform.service
ConditionPathExists=$PREFIX/.upgrade/state.json

[Service]
Type=exec
ExecStart=/usr/bin/flock --close --nonblock --conflict-exit-code 0 $PREFIX/.upgrade/lock \\
  $PREFIX/.upgrade/with/bin/platform upgrade --carry-out
WorkingDirectory=/
SuccessExitStatus=1
Restart=on-abnormal
RestartSec=1

[Install]
WantedBy=multi-user.target
END
}

# install_unit FUNCTION FILE
install_unit() {
  # Needs no room on the disk where nothing differs: a way back may not fail for it.
  if "$1" | cmp -s - "$2"; then return 0; fi
  "$1" >"$2.new"
  mv "$2.new" "$2"
  changed=1
  [ -z "$systemd" ] || systemctl daemon-reload
}

install_units() {
  install_unit unit "$UNIT"
  install_unit upgrade_unit "$UPGRADE_UNIT"
}

# Waits two minutes: the first start makes a database. Less for a service that ends again and again.
await_ready() {
  port=$(setting PORT 8080) host=$(setting HOST 127.0.0.1) end=$(($(date +%s) + 120))
  case $host in 0.0.0.0 | ::) host=127.0.0.1 ;; *:*) host=[$host] ;; esac
  while [ "$(date +%s)" -lt $end ] && [ "$(systemctl show --property=NRestarts --value platform.service)" -lt 3 ]; do
    if "$PREFIX/current/bin/node" -e '
      fetch(`http://${process.argv[1]}/readyz`)
        .then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))
    ' "$host:$port"; then return 0; fi
    sleep 0.5
  done
  reason=$(journalctl --unit platform.service --lines 50 --output cat --no-pager | grep '^platform-api: ' | tail -n 1)
  reason=${reason#platform-api: }
  fail "the service does not start, and systemd goes on trying${reason:+: $reason}. More: journalctl -u platform"
}

print_address() {
  "$PREFIX/current/bin/node" - "$(setting PLATFORM_DATA_DIR "$DATA")/first-key.json" "$version" <<'END'
const { readFileSync } = require('node:fs');
const [file, version] = process.argv.slice(2);
let first = {};
try { first = JSON.parse(readFileSync(file, 'utf8')); } catch {}
console.log(`\nPlatform ${version} runs${first.base_url ? ` at ${first.base_url}` : ''}.`);
const password = 'Set your password in the dashboard, once within 24 hours:';
if (first.setup_url) console.log(`\n${password}\n\n  ${first.setup_url}\n`);
const { hostname, port } = new URL(first.base_url ?? 'http://127.0.0.1:8080');
const tunnel = `ssh -L ${port}:127.0.0.1:${port} root@<this machine>`;
if (/^(127\.|localhost$)/.test(hostname)) console.log(`It listens on this machine alone. From yours: ${tunnel}`);
else if (first.base_url?.startsWith('http:')) console.log('Nothing encrypts what you send there.');
if (!first.base_url?.startsWith('https:'))
  console.log('\nNext, give it a domain with certificates:\n\n  platform setup --domain example.com\n');
END
}

changed=
if [ -n "$units" ]; then
  install_units
  exit 0
fi
[ -z "$packages" ] || install_packages
make_settings
install_files
link_version
install_units
if [ -z "$systemd" ]; then
  echo "Platform $version is installed. There is no systemd here. To start it: platform start"
elif [ -z "$start" ]; then
  echo "Platform $version is installed. To start it: systemctl enable --now platform"
else
  systemctl enable --quiet platform.service platform-upgrade.service
  if [ -z "$changed" ] && systemctl is-active --quiet platform.service; then
    echo "Platform $version is installed already and runs: nothing was changed."
    exit 0
  fi
  systemctl restart platform.service
  await_ready
  print_address
fi
