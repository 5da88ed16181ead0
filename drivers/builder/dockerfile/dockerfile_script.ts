// The build script for buildah. It runs in the sandbox of builds as the user of the tenant, and becomes root of a user
// namespace: one with a range of user ids set up by the runtime (drivers/runtime/sandbox/user_ranges.ts), or one with a
// single id, where a seccomp(2) filter fakes changes of the user (seccomp.ts).
import { ownersFilter } from '../../runtime/sandbox/seccomp';
import { RANGE_FD } from '../../runtime/sandbox/user_ranges';
import { STAGE_MARK, type Rewritten } from './dockerfile_rewrite';
import { shellWord } from '../language_plan';

/** Directory of the image, below the build cache. */
export const BUILT_IMAGE = 'image';

/** Build variable: `auths` of Docker's config.json for base images. Not passed to programs of the build. */
export const BASE_IMAGE_AUTH = 'PLATFORM_BASE_IMAGE_AUTH';
/** Build variable: a registry that uses plain HTTP. */
export const INSECURE_REGISTRY = 'PLATFORM_INSECURE_REGISTRY';
/** Build variable: disk limit of files and cache in megabytes. */
export const DISK_MB = 'PLATFORM_BUILD_DISK_MB';

const FILTER_FD = 5;
/** Visible to each RUN, which has the /dev of the namespace, and not part of any layer. */
const APT_SETTINGS = '/dev/platform-apt.conf';

interface DockerfileBuild {
  /** Path of the Dockerfile in the source. */
  dockerfile: string;
  /** The rewritten Dockerfile for buildah. */
  rewritten: Rewritten;
  target: string | null;
  /** Names of ARG: variables of the application with these names are passed to the build. */
  buildArguments: string[];
  /** Ids of `RUN --mount=type=secret`, with the possible variable names of each: `npm-token` is NPM_TOKEN. */
  secrets: { id: string; names: string[] }[];
}

/** Runs in the source directory, with HOME in the cache, where base images and layers are stored. */
export function dockerfileScript(build: DockerfileBuild): string {
  const { dockerfile, rewritten, target, buildArguments, secrets } = build;
  return [
    'set -e',
    'cache=${HOME%/home}',
    'own=$cache/containers',
    `range= one=yes; case $(readlink "/proc/$$/fd/${RANGE_FD}" 2>/dev/null) in user:*) range=yes one=;; esac`,
    'mkdir -p "$own/runtime"',
    ...enterLines(),
    `enter -- rm -rf "$cache/${BUILT_IMAGE}" "$own/scratch"`,
    'mkdir -p "$own/scratch"',
    ...storageLines(),
    `printf '%s' '{"default":[{"type":"insecureAcceptAnything"}]}' > "$own/policy.json"`,
    ...authLines(),
    'export CONTAINERS_STORAGE_CONF="$own/storage.conf" XDG_RUNTIME_DIR="$own/runtime" TMPDIR="$own/scratch"',
    'export _CONTAINERS_USERNS_CONFIGURED=done BUILDAH_ISOLATION=chroot',
    ...buildArguments.map((name) => `[ -z "\${${name}+set}" ] || set -- "$@" --build-arg ${name}`),
    ...secrets.map(secretLine),
    ...(target === null ? [] : [`set -- "$@" --target ${shellWord(target)}`]),
    ...fileLines(rewritten),
    `ignore=${shellWord(`${dockerfile}.dockerignore`)}`,
    'if [ -f "$ignore" ]; then set -- "$@" --ignorefile "$ignore"; fi',
    // The format of OCI has no HEALTHCHECK.
    `set -- --format docker --file "$own/Dockerfile" "$@" --tag "dir:$cache/${BUILT_IMAGE}" .`,
    ...buildLines(),
  ].join('\n');
}

/**
 * `become … -- command`: executes the command as root of a user namespace; `enter` runs it as a child. With a single
 * user id, apt is configured not to drop privileges: it would abort on finding that it still has them.
 */
function enterLines(): string[] {
  const mounts = '--ro-bind /usr /usr --ro-bind /etc /etc --bind /proc /proc --dev /dev';
  return [
    `printf ${shellWord(octal(ownersFilter()))} > "$own/filter"`,
    `printf '%s\\n' 'APT::Sandbox::User "root";' > "$own/apt.conf"`,
    'become() {',
    '  for name in bin sbin lib lib32 lib64 libx32; do',
    '    if [ -L "/$name" ]; then set -- --symlink "$(readlink "/$name")" "/$name" "$@"',
    '    elif [ -d "/$name" ]; then set -- --ro-bind "/$name" "/$name" "$@"; fi',
    '  done',
    `  [ -n "$range" ] || set -- --ro-bind "$own/apt.conf" ${APT_SETTINGS} "$@"`,
    `  set -- --cap-add ALL ${mounts} --tmpfs /sys --tmpfs /run --tmpfs /var --dir /var/tmp \\`,
    '    --bind /tmp /tmp --bind /app /app --bind "$cache" "$cache" "$@"',
    `  if [ -n "$range" ]; then exec bwrap --userns ${RANGE_FD} "$@"; fi`,
    `  exec bwrap --unshare-user --uid 0 --gid 0 --seccomp ${FILTER_FD} "$@" ${FILTER_FD}< "$own/filter"`,
    '}',
    'enter() { (become "$@"); }',
  ];
}

/**
 * Layers are cached between builds where overlay mounts work in a user namespace; otherwise each layer would be a full
 * copy. A cache larger than half of the disk limit, or owned by other ids, is discarded.
 */
function storageLines(): string[] {
  const storage = '[storage]\ndriver = "%s"\nrunroot = "%s/run"\ngraphroot = "%s"\n';
  const chownErrors = '[storage.options.%s]\nignore_chown_errors = "true"\n';
  return [
    'layers= driver=vfs try=$own/try',
    'enter -- rm -rf "$try"; enter -- mkdir -p "$try/lower" "$try/upper" "$try/work" "$try/merged"',
    'if enter -- mount -t overlay overlay \\',
    '  -o "lowerdir=$try/lower,upperdir=$try/upper,workdir=$try/work,userxattr" "$try/merged" 2>/dev/null',
    'then layers=--layers driver=overlay; fi',
    'enter -- rm -rf "$try"',
    `ids=$(enter -- sed -n 's/^ *1 *\\([0-9]*\\) .*/\\1/p' /proc/self/uid_map)`,
    'store=$own/layers-${ids:-one}-$driver',
    'for one in "$own/store" "$own/vfs" "$own/overlay" "$own"/layers-*; do',
    '  [ "$one" = "$store" ] || [ ! -e "$one" ] || enter -- rm -rf "$one" 2>/dev/null || :',
    'done',
    'used=$(enter -- du -sm "$own" 2>/dev/null | cut -f1)',
    `if [ "\${used:-0}" -gt "$((\${${DISK_MB}:-4096} / 2))" ]; then`,
    '  echo "The cache of layers has grown to $used MB. It begins anew."',
    '  enter -- rm -rf "$store" "$own/run" "$own"/mounts-*',
    'fi',
    ...mountCacheLines(),
    `printf ${shellWord(storage)} "$driver" "$own" "$store" > "$own/storage.conf"`,
    `[ -n "$range" ] || printf ${shellWord(chownErrors)} "$driver" >> "$own/storage.conf"`,
  ];
}

/**
 * Contents of `RUN --mount=type=cache` are cached like layers, and together with them. buildah stores them below
 * TMPDIR, under one of two names.
 */
function mountCacheLines(): string[] {
  return [
    'mounts=$own/mounts-${ids:-one}',
    'for one in "$own"/mounts-*; do',
    '  [ "$one" = "$mounts" ] || [ ! -e "$one" ] || enter -- rm -rf "$one" 2>/dev/null || :',
    'done',
    'mkdir -p "$mounts"',
    'for one in buildah-cache buildah-cache-0; do ln -s "$mounts" "$own/scratch/$one"; done',
  ];
}

/**
 * Output of buildah is filtered by sed, which removes Go value dumps. Base images without a history are incompatible
 * with cached layers.
 */
function buildLines(): string[] {
  const dumps = [
    '-e "/^Error: .*history lists/w $own/messages"',
    "-e '/^Error: /s/ for step {.*}: / /' -e '/^Error: /s/ *&imagebuilder[.]Step{.*}//' -e '/UNHANDLED LOGLEVEL/d'",
  ];
  return [
    // Merge stderr into stdout: the order of the lines identifies the step.
    'build() {',
    '  { code=0',
    '    enter --chdir "$PWD" -- buildah --signature-policy "$own/policy.json" build "$@" 2>&1 || code=$?',
    `    echo "$code" > "$own/code"; } | sed -u ${dumps.join(' ')}`,
    '  return "$(cat "$own/code")"',
    '}',
    'build $layers "$@" && code=0 || code=$?',
    'if [ "$code" != 0 ] && [ -s "$own/messages" ]; then',
    '  echo "The base image has no history, so layers are not kept. The build begins anew."',
    '  build "$@" && code=0 || code=$?',
    'fi',
    'exit "$code"',
  ];
}

/** Base64, since quotes would multiply in the enclosing scripts. */
function fileLines({ text, contexts }: Rewritten): string[] {
  const write = (content: string, place: string) =>
    `printf %s ${Buffer.from(content).toString('base64')} | base64 -d > "${place}"`;
  return [
    write(text, '$own/Dockerfile'),
    `[ -n "$range" ] || sed -i 's|^${STAGE_MARK}$|ARG APT_CONFIG=${APT_SETTINGS}|' "$own/Dockerfile"`,
    'rm -rf "$own/documents"',
    ...Object.entries(contexts).flatMap(([context, files]) => [
      `mkdir -p "$own/documents/${context}"`,
      ...Object.entries(files).map(([name, content]) => write(content, `$own/documents/${context}/${name}`)),
      `set -- "$@" --build-context "${context}=$own/documents/${context}"`,
    ]),
  ];
}

/** Credentials are in the /tmp of the build, which is removed afterwards and not visible to RUN. */
function authLines(): string[] {
  return [
    `if [ -n "\${${BASE_IMAGE_AUTH}-}" ]; then`,
    `  (umask 077 && printf '%s' "$${BASE_IMAGE_AUTH}" > /tmp/auth.json)`,
    '  export REGISTRY_AUTH_FILE=/tmp/auth.json',
    'fi',
    `unset ${BASE_IMAGE_AUTH}`,
    'registries=/etc/containers/registries.conf',
    // Short names such as `FROM node:24` are from Docker Hub, unless the operator configures otherwise.
    'if grep -qsE "^ *(unqualified-search|\\[registries\\.)" "$registries"; then :',
    `else printf 'unqualified-search-registries = ["docker.io"]\n'; fi > "$own/registries.conf"`,
    'cat "$registries" >> "$own/registries.conf" 2>/dev/null || :',
    `[ -z "\${${INSECURE_REGISTRY}-}" ] || printf '\n[[registry]]\nlocation = "%s"\ninsecure = true\n' \\`,
    `  "$${INSECURE_REGISTRY}" >> "$own/registries.conf"`,
    'export CONTAINERS_REGISTRIES_CONF="$own/registries.conf"',
  ];
}

/** Only the name of the variable is in the arguments, not its value; RUN gets it as a file that is in no layer. */
function secretLine({ id, names }: DockerfileBuild['secrets'][number]): string {
  const cases = names.map(
    (name) => `[ -n "\${${name}+set}" ]; then set -- "$@" --secret id=${id},type=env,env=${name}`,
  );
  return `if ${cases.join('\nelif ')}\nfi`;
}

function octal(bytes: Buffer): string {
  return [...bytes].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
}
