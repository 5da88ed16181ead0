// Why a build of a Dockerfile failed: a sentence with the line, from what the build printed. Programs of the build may
// print what looks alike; all that they reach is the reason of their own failure.

/** Reads the output of a build line by line. */
export interface FailureReader {
  add(line: string): void;
  /** null where the output says nothing. */
  reason(): string | null;
}

const TEXT_MAX = 300;
/** What buildah says of the processes around a RUN. */
const NOISE =
  /^(subprocess exited with status \d+|-->.*|time="[^"]*" level=.*|\s*|Error: .*|Build the image failed.*)$/;
/** Added where a build has one user id (dockerfile_script.ts). */
const ADDED = 'ARG APT_CONFIG=';

/** @param lines line of each step in the source, by stage */
export function readFailure({ name, lines }: { name: string; lines: number[][] }): FailureReader {
  let step: { line: number | null; text: string } | null = null;
  let [added, last, error] = [0, '', ''];
  return {
    add(line) {
      const [, stage = '1', number = '', text = ''] = /^(?:\[(\d+)\/\d+\] )?STEP (\d+)\/\d+: (.*)$/.exec(line) ?? [];
      if (number !== '') {
        if (number === '1') added = 0;
        step = { line: lines[Number(stage) - 1]?.[Number(number) - 1 - added] ?? null, text };
        if (text.startsWith(ADDED)) added += 1;
        [last, error] = ['', ''];
      } else if (line.startsWith('Error: ')) error = line.slice('Error: '.length);
      else if (!NOISE.test(line)) last = line.trim();
    },
    reason() {
      if (error === '') return null;
      const place =
        step === null ? name : step.line === null ? `\`${cut(step.text)}\`` : `Line ${step.line} of ${name}`;
      return `${place}: ${explain(error, step?.text ?? '', last)}`;
    },
  };
}

const CAUSES: [pattern: RegExp, explanation: (...found: string[]) => string][] = [
  [
    /copier: stat: "\/?([^"]*)": no such file/,
    (file) => `there is no \`${file}\` to copy. Check the path, and whether .dockerignore leaves it out.`,
  ],
  [
    /no items matching glob "[^"]*"/,
    () => 'nothing to copy matches. Check the path, and whether .dockerignore leaves it out.',
  ],
  [
    /unknown (user|group) error looking up (?:user|group) "([^"]*)"/,
    (kind, who) => `the image has no ${kind} ${who}. Create it above, for example with RUN ${kind}add ${who}.`,
  ],
  [
    /initializing source docker:\/\/(\S+): (.*)$/,
    (image, why) => `the base image ${image} could not be pulled: ${lastPart(why)}`,
  ],
  [
    /^COPY --from=(\S+): no stage or image/,
    (stage) => `there is no stage and no image ${stage}, from which it copies.`,
  ],
  [
    /secret required but no secret with id (\S+)/,
    (id) => `the secret ${id} is no variable of the application that is available at build time.`,
  ],
  [/no space left on device|disk quota exceeded/, () => 'the disk of the build is full.'],
];

function explain(error: string, step: string, last: string): string {
  const code = /: exit status (\d+)$/.exec(error)?.[1];
  if (code !== undefined && /^RUN\b/.test(step))
    return `\`${cut(step, 100)}\` ended with exit code ${code}${last === '' ? '.' : `: ${sentence(last)}`}`;
  for (const [pattern, explanation] of CAUSES) {
    const found = pattern.exec(error);
    if (found) return sentence(explanation(...found.slice(1)));
  }
  return sentence(causeOf(error));
}

/** Without what buildah was doing, its dumps of values of Go, and where its files are on the host. */
function causeOf(error: string): string {
  return error
    .replace(/^building at STEP ".*?": (?=[^"]*$|.*: )/, '')
    .replaceAll(/ ?for step \{.*?\}: /g, ' ')
    .replaceAll(/ *&?\w+\.\w+\{.*\}/g, '')
    .replace(/^resolving mountpoints for container "[^"]*": /, '')
    .replaceAll(/\/\S*\/containers\/(\S+)/g, '$1');
}

/** Messages of Go have the cause at their end. */
function lastPart(text: string): string {
  return text.split(': ').slice(-2).join(': ');
}

function sentence(text: string): string {
  const whole = cut(text);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}

function cut(text: string, max: number = TEXT_MAX): string {
  const plain = text.replaceAll(/[\u0000-\u001f\u007f]+/g, ' ').trim();
  return plain.length > max ? `${plain.slice(0, max - 1)}…` : plain;
}
