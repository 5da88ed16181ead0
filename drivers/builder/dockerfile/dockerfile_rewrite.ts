// Rewrites Dockerfile features that older versions of buildah lack: several names in one ARG, relative mount targets,
// `COPY --link`, here-documents (supported by buildah 1.33 and later).
import path from 'node:path';
import { BuildError } from '../../builder';
import { optionsOf, parseDockerfile, wordsOf, type HereDocument, type Instruction } from './dockerfile_text';

export interface Rewritten {
  text: string;
  /** Line number of each step in the source, by stage; the first step is FROM. */
  lines: number[][];
  /** Here-documents of COPY and ADD as files, by the name of a build context. */
  contexts: Record<string, Record<string, string>>;
}

/** Comment inserted after each FROM, for lines that depend on the build host. */
export const STAGE_MARK = '# platform: a stage begins';

interface Stage {
  /** null: the directory of the base image, which is not known here. */
  directory: string | null;
  shell: string[];
}

interface State {
  file: string;
  stage: Stage;
  named: Map<string, Stage>;
  contexts: Rewritten['contexts'];
}

const OUTSIDE: Stage = { directory: null, shell: ['/bin/sh', '-c'] };

/** @param file its name in messages. @throws BuildError with the line number, for features that cannot be rewritten */
export function rewriteDockerfile(text: string, file: string): Rewritten {
  const state: State = { file, stage: OUTSIDE, named: new Map(), contexts: {} };
  const lines: number[][] = [];
  const output: string[] = directivesOf(text);
  for (const instruction of parseDockerfile(text)) {
    const isFrom = instruction.name === 'FROM';
    if (isFrom) lines.push([]);
    const written = rewriteInstruction(instruction, state);
    written.forEach(() => lines.at(-1)?.push(instruction.line));
    output.push(...written, ...(isFrom ? [STAGE_MARK] : []));
  }
  return { text: `${output.join('\n')}\n`, lines, contexts: state.contexts };
}

function directivesOf(text: string): string[] {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  const end = lines.findIndex((line) => !/^\s*#\s*[a-z]+\s*=/i.test(line));
  return lines.slice(0, end);
}

function rewriteInstruction(instruction: Instruction, state: State): string[] {
  const { name, rest, source } = instruction;
  if (name === 'FROM') state.stage = beginStage(rest, state);
  if (name === 'WORKDIR') state.stage.directory = below(state.stage.directory ?? '/', unquoted(rest));
  if (name === 'SHELL') state.stage.shell = shellOf(rest) ?? state.stage.shell;
  if (name === 'ARG' && wordsOf(rest).length > 1) return wordsOf(rest).map((word) => `ARG ${word}`);
  if (name === 'RUN') return [rewriteRun(instruction, state)];
  if (name === 'COPY' || name === 'ADD') return [rewriteCopy(instruction, state)];
  return [source];
}

function beginStage(rest: string, { named }: State): Stage {
  const { command } = optionsOf(rest);
  const [base = '', as = '', alias] = wordsOf(command);
  const parent = named.get(base.toLowerCase()) ?? (base === 'scratch' ? { ...OUTSIDE, directory: '/' } : OUTSIDE);
  const stage = { ...parent };
  if (as.toUpperCase() === 'AS' && alias !== undefined) named.set(alias.toLowerCase(), stage);
  return stage;
}

function shellOf(rest: string): string[] | null {
  try {
    const words: unknown = JSON.parse(rest);
    return Array.isArray(words) && words.every((word) => typeof word === 'string') ? words : null;
  } catch {
    return null;
  }
}

function rewriteRun(instruction: Instruction, state: State): string {
  const { rest, source, documents } = instruction;
  const { options, command } = optionsOf(rest);
  const mounts = options.map((option) => withLockedFlags(absoluteMount(option, instruction, state)));
  if (documents.length === 0) return mounts.join() === options.join() ? source : ['RUN', ...mounts, command].join(' ');
  const words = [...state.stage.shell, scriptOf(command, documents)];
  return ['RUN', ...mounts, JSON.stringify(words)].join(' ');
}

/** A single here-document is the script itself; otherwise the shell parses the documents in the command. */
function scriptOf(command: string, documents: readonly HereDocument[]): string {
  const [only] = documents;
  if (only && /^<<-?(["']?)[\w.-]+\1$/.test(command)) return only.text.startsWith('#!') ? asProgram(only) : only.text;
  const ends = documents.map(({ name, text }) => `${text}${name}\n`);
  return `${command.replaceAll(/<<-(["']?[A-Za-z_])/g, '<<$1')}\n${ends.join('')}`;
}

function asProgram({ name, text }: HereDocument): string {
  const lines = ['program=$(mktemp)', `cat > "$program" <<'${name}'`, `${text}${name}`];
  return [...lines, 'chmod 700 "$program"', '"$program"; code=$?; rm -f "$program"; exit "$code"'].join('\n');
}

/** Relative to WORKDIR, as in BuildKit; `docker init` writes `--mount=type=bind,source=a,target=a`. */
function absoluteMount(option: string, { line }: Instruction, { file, stage }: State): string {
  if (!option.startsWith('--mount=')) return option;
  return option.replace(/([=,](?:target|dst|destination)=)([^,/$][^,]*)/, (_, key: string, target: string) => {
    if (stage.directory !== null) return key + below(stage.directory, target);
    throw new BuildError(
      `Line ${line} of ${file}: the target ${target} of --mount is relative, and the stage has no WORKDIR above it. ` +
        'Add a WORKDIR, or name an absolute path.',
    );
  });
}

/** Mounts with nosuid and nodev in the sandbox must keep these flags when they are remounted. */
function withLockedFlags(option: string): string {
  const isBind = option.startsWith('--mount=') && !/[=,]type=(secret|ssh|tmpfs)(,|$)/.test(option);
  return isBind ? `${option.replaceAll(/,(nosuid|nodev)(?=,|$)/g, '')},nosuid,nodev` : option;
}

function rewriteCopy(instruction: Instruction, state: State): string {
  const { name, rest, source, documents } = instruction;
  const { options, command } = optionsOf(rest);
  // --link only affects layer caching.
  const kept = options.filter((option) => !/^--link(=true|=false)?$/.test(option));
  if (documents.length > 0) return copyDocuments(instruction, kept, command, state);
  return kept.length === options.length ? source : [name, ...kept, command].join(' ');
}

function copyDocuments(
  { line, name, documents }: Instruction,
  options: string[],
  command: string,
  { file, contexts }: State,
): string {
  const words = wordsOf(command);
  const target = words.pop() ?? '';
  const isPlain = words.length === documents.length;
  if (!isPlain || documents.some(({ isQuoted, text }) => !isQuoted && text.includes('$')))
    throw new BuildError(
      `Line ${line} of ${file}: ${name} with a here-document that has variables, or that stands beside other files, ` +
        'needs buildah 1.33. Write the file into the source, or quote the delimiter, for example <<"EOF".',
    );
  const context = `platform-documents-${Object.keys(contexts).length + 1}`;
  contexts[context] = Object.fromEntries(documents.map((document) => [document.name, document.text]));
  return ['COPY', ...options, `--from=${context}`, ...documents.map((document) => document.name), target].join(' ');
}

/** A leading variable may contain an absolute path. */
function below(directory: string, target: string): string {
  return target.startsWith('$')
    ? target
    : path.posix.resolve(directory.replace(/^(?=\$)/, '/'), target).replace(/^\/(?=\$)/, '');
}

function unquoted(word: string): string {
  return word.replace(/^(["'])(.*)\1$/, '$2');
}
