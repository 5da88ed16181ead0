// Builds of Dockerfiles by buildah, within the sandbox of every build: as the user of the tenant, who is root in a user
// namespace of its own and nowhere else. The image is left in a directory of the cache, for the job to take.
import path from 'node:path';
import type { HostFacts } from '../../core/host_facts';
import { BuildError, type BuildPlan, type BuildSettings } from '../builder';
import { setgroupsFilter } from '../runtime/seccomp';
import { shellWord } from './language_plan';
import type { SourceFiles } from './source_files';

/** Where the image is, below the cache of the build. */
export const BUILT_IMAGE = 'image';

/** Variable of a build: `auths` of Docker's config.json for base images. It never reaches the programs of a build. */
export const BASE_IMAGE_AUTH = 'PLATFORM_BASE_IMAGE_AUTH';
/** Variable of a build: a registry that speaks plain HTTP. */
export const INSECURE_REGISTRY = 'PLATFORM_INSECURE_REGISTRY';
/** Variable of a build: megabytes that its files and its cache may take. */
export const DISK_MB = 'PLATFORM_BUILD_DISK_MB';

const INSTEAD = 'Use the builder `buildpack` with a Procfile, or one of the languages of this platform.';

/** @throws BuildError where there is no such file or stage, or nothing to build it with */
export async function planDockerfile(
  files: SourceFiles,
  { dockerfile_path: dockerfile, dockerfile_target }: Pick<BuildSettings, 'dockerfile_path' | 'dockerfile_target'>,
  facts: HostFacts,
): Promise<BuildPlan> {
  const text = await files.read(dockerfile);
  const target = dockerfile_target ?? null;
  if (text === null)
    throw new BuildError(
      `The source has no ${dockerfile}. Check build.dockerfile_path in the settings of the application.`,
    );
  if (target !== null && !stagesIn(text).includes(target.toLowerCase()))
    throw new BuildError(
      `${dockerfile} has no stage ${target}. Check build.dockerfile_target in the settings of the application.`,
    );
  if (!canBuildImages(facts))
    throw new BuildError(`A Dockerfile needs buildah and bubblewrap, which this platform does not have. ${INSTEAD}`);
  return {
    kind: 'dockerfile',
    summary: `Dockerfile ${path.posix.normalize(dockerfile)}${target === null ? '' : `, stage ${target}`}`,
    steps: [{ name: 'Build the image', command: buildCommand(dockerfile, target, text) }],
    processes: {},
    release_command: null,
    env: {},
  };
}

export function canBuildImages({ oci_builders, programs }: HostFacts): boolean {
  return oci_builders.includes('buildah') && programs.bubblewrap !== undefined;
}

function stagesIn(text: string): string[] {
  return [...text.matchAll(/^\s*FROM\s.*\sAS\s+(\S+)\s*$/gim)].map(([, name = '']) => name.toLowerCase());
}

/** Names of ARG: a variable of the application that has such a name is passed on. */
function argumentsIn(text: string): string[] {
  return [...new Set([...text.matchAll(/^\s*ARG\s+([A-Za-z_]\w*)/gim)].map(([, name = '']) => name))];
}

/** Ids of `RUN --mount=type=secret`, and which variables each may be: `npm-token` is NPM_TOKEN. */
function secretsIn(text: string): { id: string; names: string[] }[] {
  const mounts = [...text.matchAll(/--mount=(\S*type=secret\S*)/g)].map(([, options = '']) => options);
  const ids = mounts.map((options) => /(?:^|,)id=([\w.-]+)/.exec(options)?.[1]).filter((id) => id !== undefined);
  return [...new Set(ids)].flatMap((id) => {
    const plain = id.replaceAll(/[.-]/g, '_');
    return /^[A-Za-z_]/.test(plain) ? [{ id, names: [...new Set([plain, plain.toUpperCase()])] }] : [];
  });
}

/**
 * In the directory of the source, with HOME in the cache, where base images and layers stay. With a single user id no
 * other can be set, so errors of chown are ignored and setgroups(2), which is refused to such a namespace, says yes.
 */
function buildCommand(dockerfile: string, target: string | null, text: string): string {
  return [
    'set -e',
    'cache=${HOME%/home}',
    'own=$cache/containers',
    `rm -rf "$cache/${BUILT_IMAGE}" "$own/scratch"`,
    'mkdir -p "$own/scratch" "$own/runtime"',
    `printf ${shellWord(octal(setgroupsFilter()))} > "$own/filter"`,
    ...enterLines(),
    ...storageLines(),
    `printf '%s' '{"default":[{"type":"insecureAcceptAnything"}]}' > "$own/policy.json"`,
    ...authLines(),
    'export CONTAINERS_STORAGE_CONF="$own/storage.conf" XDG_RUNTIME_DIR="$own/runtime" TMPDIR="$own/scratch"',
    'export _CONTAINERS_USERNS_CONFIGURED=done BUILDAH_ISOLATION=chroot',
    ...argumentsIn(text).map((name) => `[ -z "\${${name}+set}" ] || set -- "$@" --build-arg ${name}`),
    ...secretsIn(text).map(secretLine),
    ...(target === null ? [] : [`set -- "$@" --target ${shellWord(target)}`]),
    // The format of OCI has no HEALTHCHECK.
    `set -- build $layers --format docker --file ${shellWord(dockerfile)} "$@" --tag "dir:$cache/${BUILT_IMAGE}" .`,
    'enter --chdir "$PWD" -- buildah --signature-policy "$own/policy.json" "$@"',
  ].join('\n');
}

/** `enter … -- command`: becomes the command, as root of a user namespace. */
function enterLines(): string[] {
  const mounts = '--ro-bind /usr /usr --ro-bind /etc /etc --bind /proc /proc --dev /dev';
  return [
    'enter() {',
    '  for name in bin sbin lib lib32 lib64 libx32; do',
    '    if [ -L "/$name" ]; then set -- --symlink "$(readlink "/$name")" "/$name" "$@"',
    '    elif [ -d "/$name" ]; then set -- --ro-bind "/$name" "/$name" "$@"; fi',
    '  done',
    '  exec bwrap --unshare-user --uid 0 --gid 0 --cap-add ALL --seccomp 9 \\',
    `    ${mounts} --tmpfs /sys --tmpfs /run --tmpfs /var --dir /var/tmp \\`,
    '    --bind /tmp /tmp --bind /app /app --bind "$cache" "$cache" "$@" 9< "$own/filter"',
    '}',
  ];
}

/**
 * Layers are kept for the next build where an overlay can be mounted in a user namespace. Elsewhere each would be a
 * whole copy. What has grown beyond half of the limit of the disk begins anew.
 */
function storageLines(): string[] {
  const storage =
    '[storage]\ndriver = "%s"\nrunroot = "%s/run"\ngraphroot = "%s/%s"\n[storage.options.%s]\n' +
    'ignore_chown_errors = "true"\n';
  return [
    'layers= driver=vfs try=$own/try',
    'mkdir -p "$try/lower" "$try/upper" "$try/work" "$try/merged"',
    'if (enter -- mount -t overlay overlay \\',
    '  -o "lowerdir=$try/lower,upperdir=$try/upper,workdir=$try/work,userxattr" "$try/merged") 2>/dev/null',
    'then layers=--layers driver=overlay; fi',
    'chmod -R u+rwX "$try"; rm -rf "$try"',
    'used=$(du -sm "$own" 2>/dev/null | cut -f1)',
    `if [ "\${used:-0}" -gt "$((\${${DISK_MB}:-4096} / 2))" ]; then`,
    '  echo "The cache of layers has grown to $used MB. It begins anew."',
    '  chmod -R u+rwX "$own/vfs" "$own/overlay" 2>/dev/null || :',
    '  rm -rf "$own/vfs" "$own/overlay" "$own/run"',
    'fi',
    `printf ${shellWord(storage)} "$driver" "$own" "$own" "$driver" "$driver" > "$own/storage.conf"`,
    // Of builds of before.
    'rm -rf "$own/store"',
  ];
}

/** Credentials lie in the /tmp of the build, which goes with it, and which no RUN sees. */
function authLines(): string[] {
  return [
    `if [ -n "\${${BASE_IMAGE_AUTH}-}" ]; then`,
    `  (umask 077 && printf '%s' "$${BASE_IMAGE_AUTH}" > /tmp/auth.json)`,
    '  export REGISTRY_AUTH_FILE=/tmp/auth.json',
    'fi',
    `unset ${BASE_IMAGE_AUTH}`,
    `if [ -n "\${${INSECURE_REGISTRY}-}" ]; then`,
    `  printf '[[registry]]\\nlocation = "%s"\\ninsecure = true\\n' "$${INSECURE_REGISTRY}" > "$own/registries.conf"`,
    '  export CONTAINERS_REGISTRIES_CONF="$own/registries.conf"',
    'fi',
  ];
}

/** The variable is named, its value stays out of the arguments; the RUN finds it as a file that is in no layer. */
function secretLine({ id, names }: { id: string; names: string[] }): string {
  const cases = names.map(
    (name) => `[ -n "\${${name}+set}" ]; then set -- "$@" --secret id=${id},type=env,env=${name}`,
  );
  return `if ${cases.join('\nelif ')}\nfi`;
}

function octal(bytes: Buffer): string {
  return [...bytes].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
}
