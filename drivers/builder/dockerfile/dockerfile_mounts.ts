// Sources of `RUN --mount=type=bind`: the buildah of Debian 12 only warns if they are missing.
import path from 'node:path';
import { BuildError } from '../../builder';
import { optionsOf, type Instruction } from './dockerfile_text';
import type { SourceFiles } from '../source_files';

/** @param file its name in messages. @throws BuildError with the line number, for a missing file */
export async function requireMountSources(
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
