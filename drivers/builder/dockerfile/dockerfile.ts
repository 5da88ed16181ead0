// Builds Dockerfiles with buildah, inside the sandbox of builds: as the user of the tenant, who is root in its own user
// namespace only. The image is left in the cache directory, where the job picks it up.
import path from 'node:path';
import type { HostFacts } from '../../../core/catalog/host_facts';
import { BuildError, type BuildPlan, type BuildSettings } from '../../builder';
import { rewriteDockerfile } from './dockerfile_rewrite';
import { requireBuildable } from './dockerfile_rules';
import { dockerfileScript } from './dockerfile_script';
import { optionsOf, parseDockerfile, wordsOf, type Instruction } from './dockerfile_text';
import type { SourceFiles } from '../source_files';

/** The Dockerfile is part of the build command. */
const BYTES_MAX = 64 * 1024;
const INSTEAD = 'Use the builder `buildpack` with a Procfile, or one of the languages of this platform.';

/** @throws BuildError for a missing file or stage, or without buildah */
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
  await requireMountSources(parseDockerfile(text), path.posix.normalize(dockerfile), files);
  return planBuild(dockerfile, text, target);
}

function planBuild(dockerfile: string, text: string, target: string | null): BuildPlan {
  const name = path.posix.normalize(dockerfile);
  if (Buffer.byteLength(text) > BYTES_MAX)
    throw new BuildError(`${name} is larger than ${BYTES_MAX / 1024} KB. Move scripts in it to files of their own.`);
  const instructions = parseDockerfile(text);
  requireBuildable(instructions, name);
  const rewritten = rewriteDockerfile(text, name);
  const [buildArguments, secrets] = [argumentsIn(instructions), secretsIn(instructions)];
  const command = dockerfileScript({ dockerfile, rewritten, target, buildArguments, secrets });
  return {
    kind: 'dockerfile',
    summary: `Dockerfile ${name}${target === null ? '' : `, stage ${target}`}`,
    steps: [{ name: 'Build the image', command }],
    dockerfile: { name, lines: rewritten.lines },
    processes: {},
    release_command: null,
    env: {},
  };
}

export function canBuildImages({ oci_builders, programs }: HostFacts): boolean {
  return oci_builders.includes('buildah') && programs.bubblewrap !== undefined;
}

function stagesIn(text: string): string[] {
  return [...text.matchAll(/^[ \t]*FROM\s.*\sAS\s+(\S+)\s*$/gim)].map(([, name = '']) => name.toLowerCase());
}

/** Variables of the application with the name of an ARG are passed to the build. */
function argumentsIn(instructions: readonly Instruction[]): string[] {
  const words = instructions.filter(({ name }) => name === 'ARG').flatMap(({ rest }) => wordsOf(rest));
  return [...new Set(words.map((word) => word.split('=')[0] ?? '').filter((name) => /^[A-Za-z_]\w*$/.test(name)))];
}

/** Ids of `RUN --mount=type=secret`, with the possible variable names of each: `npm-token` is NPM_TOKEN. */
function secretsIn(instructions: readonly Instruction[]): { id: string; names: string[] }[] {
  const options = instructions.filter(({ name }) => name === 'RUN').flatMap(({ rest }) => optionsOf(rest).options);
  const mounts = options.filter((option) => /^--mount=.*type=secret/.test(option));
  const ids = mounts.map((option) => /[=,]id=([\w.-]+)/.exec(option)?.[1]).filter((id) => id !== undefined);
  return [...new Set(ids)].flatMap((id) => {
    const plain = id.replaceAll(/[.-]/g, '_');
    return /^[A-Za-z_]/.test(plain) ? [{ id, names: [...new Set([plain, plain.toUpperCase()])] }] : [];
  });
}

// Sources of `RUN --mount=type=bind`: the buildah of Debian 12 only warns if they are missing.

/** @param file its name in messages. @throws BuildError with the line number, for a missing file */
async function requireMountSources(
  instructions: readonly Instruction[],
  file: string,
  files: Pick<SourceFiles, 'has' | 'isDirectory'>,
): Promise<void> {
  for (const { name, line, rest } of instructions) {
    if (name !== 'RUN') continue;
    for (const source of optionsOf(rest).options.flatMap(sourceOf)) {
      if ((await files.has(source)) || (await files.isDirectory(source))) continue;
      throw new BuildError(`Line ${line} of ${file}: there is no \`${source}\` in the source to mount.`);
    }
  }
}

/** Sources in another stage or image, or with variables, are known only during the build. */
function sourceOf(option: string): string[] {
  const fields = new Map(
    option.startsWith('--mount=')
      ? option
          .slice('--mount='.length)
          .split(',')
          .map((field) => [field.replace(/=.*$/, ''), field.replace(/^[^=]*=?/, '').replace(/^"(.*)"$/, '$1')] as const)
      : [['type', 'none'] as const],
  );
  const source = fields.get('source') ?? fields.get('src') ?? '.';
  if ((fields.get('type') ?? 'bind') !== 'bind' || fields.has('from') || source.includes('$')) return [];
  return [path.posix.join('.', path.posix.resolve('/', source).slice(1))];
}
