// Builds of Dockerfiles by buildah, within the sandbox of every build: as the user of the tenant, who is root in a user
// namespace of its own and nowhere else. The image is left in the cache as an OCI layout, for the job to take.
import path from 'node:path';
import type { HostFacts } from '../../core/host_facts';
import { BuildError, type BuildPlan } from '../builder';
import { setgroupsFilter } from '../runtime/seccomp';
import { shellWord } from './language_plan';
import type { SourceFiles } from './source_files';

/** Where the image is, below the cache of the build. */
export const BUILT_IMAGE = 'image';

const INSTEAD = 'Use the builder `buildpack` with a Procfile, or one of the languages of this platform.';

/** @throws BuildError where there is no such file, or nothing to build it with */
export async function planDockerfile(
  files: SourceFiles,
  dockerfile: string,
  { oci_builders, programs }: HostFacts,
): Promise<BuildPlan> {
  const text = await files.read(dockerfile);
  if (text === null)
    throw new BuildError(
      `The source has no ${dockerfile}. Check build.dockerfile_path in the settings of the application.`,
    );
  if (!oci_builders.includes('buildah') || !programs.bubblewrap)
    throw new BuildError(`A Dockerfile needs buildah and bubblewrap, which this platform does not have. ${INSTEAD}`);
  return {
    kind: 'dockerfile',
    summary: `Dockerfile ${path.posix.normalize(dockerfile)}`,
    steps: [{ name: 'Build the image', command: buildCommand(dockerfile, argumentsIn(text)) }],
    processes: {},
    release_command: null,
    env: {},
  };
}

/** Names of ARG: a variable of the application that has such a name is passed on. */
function argumentsIn(text: string): string[] {
  return [...new Set([...text.matchAll(/^\s*ARG\s+([A-Za-z_]\w*)/gim)].map(([, name = '']) => name))];
}

/**
 * In the directory of the source, with HOME in the cache, where base images stay. With a single user id no
 * other can be set, so errors of chown are ignored and setgroups(2), which is refused to such a namespace, says yes.
 */
function buildCommand(dockerfile: string, names: string[]): string {
  const storage =
    '[storage]\ndriver = "vfs"\nrunroot = "%s/run"\ngraphroot = "%s/store"\n[storage.options.vfs]\n' +
    'ignore_chown_errors = "true"\n';
  return [
    'set -e',
    'cache=${HOME%/home}',
    'own=$cache/containers',
    `rm -rf "$cache/${BUILT_IMAGE}" "$own/scratch"`,
    'mkdir -p "$own/scratch" "$own/runtime"',
    `printf ${shellWord(storage)} "$own" "$own" > "$own/storage.conf"`,
    `printf '%s' '{"default":[{"type":"insecureAcceptAnything"}]}' > "$own/policy.json"`,
    `printf ${shellWord(octal(setgroupsFilter()))} > "$own/filter"`,
    'export CONTAINERS_STORAGE_CONF="$own/storage.conf" XDG_RUNTIME_DIR="$own/runtime" TMPDIR="$own/scratch"',
    'export _CONTAINERS_USERNS_CONFIGURED=done BUILDAH_ISOLATION=chroot',
    ...names.map((name) => `[ -z "\${${name}+set}" ] || set -- "$@" --build-arg ${name}`),
    `set -- buildah --signature-policy "$own/policy.json" build --file ${shellWord(dockerfile)} "$@"`,
    `set -- "$@" --tag "oci:$cache/${BUILT_IMAGE}:latest" .`,
    'set -- --chdir "$PWD" -- "$@"',
    'for name in bin sbin lib lib32 lib64 libx32; do',
    '  if [ -L "/$name" ]; then set -- --symlink "$(readlink "/$name")" "/$name" "$@"',
    '  elif [ -d "/$name" ]; then set -- --ro-bind "/$name" "/$name" "$@"; fi',
    'done',
    'exec bwrap --unshare-user --uid 0 --gid 0 --cap-add ALL --seccomp 9 \\',
    '  --ro-bind /usr /usr --ro-bind /etc /etc --bind /proc /proc --dev /dev --tmpfs /sys --tmpfs /run --tmpfs /var \\',
    '  --bind /tmp /tmp --bind /app /app --bind "$cache" "$cache" "$@" 9< "$own/filter"',
  ].join('\n');
}

function octal(bytes: Buffer): string {
  return [...bytes].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
}
