// Why a Dockerfile build failed: a sentence with the line number, from the output of the build. Programs can forge such
// output, but only affect the reason of their own failure.
import {
  FAILURE_EXCERPT_MAX,
  cutText,
  describeEnd,
  endSentence,
  failureExcerpt,
  signalOf,
  type Hide,
} from '../../../core/log/failure_excerpt';
import { keepTail, type FailureReader } from '../command_failure';

/** Messages of buildah about the processes of a RUN. */
const NOISE = /^(subprocess exited (with status \d+|on .*)|-->.*|time="[^"]*" level=.*|\s*|Build the image failed.*)$/;
const ERROR = 'Error: ';
/** Inserted for builds with a single user id (dockerfile_script.ts). */
const ADDED = 'ARG APT_CONFIG=';

/** @param lines line number of each step in the source, by stage */
export function readFailure({ name, lines }: { name: string; lines: number[][] }, hide: Hide): FailureReader {
  const tail = keepTail();
  let step: { line: number | null; text: string } | null = null;
  let [added, error, signal] = [0, '', ''];
  const excerpt = (): string => failureExcerpt(tail.lines(), hide);
  const place = (): string => {
    if (step === null) return name;
    return step.line === null ? `\`${cut(hide(step.text))}\`` : `Line ${step.line} of ${name}`;
  };
  return {
    add(line) {
      const [, stage = '1', number = '', text = ''] = /^(?:\[(\d+)\/\d+\] )?STEP (\d+)\/\d+: (.*)$/.exec(line) ?? [];
      if (number !== '') {
        if (number === '1') added = 0;
        step = { line: lines[Number(stage) - 1]?.[Number(number) - 1 - added] ?? null, text };
        if (text.startsWith(ADDED)) added += 1;
        [error, signal] = ['', ''];
        tail.clear();
      } else if (line.startsWith(ERROR)) {
        // The last error is from buildah; earlier ones are from the program.
        if (error !== '') tail.add(`${ERROR}${error}`);
        error = line.slice(ERROR.length);
      } else if (!NOISE.test(line)) tail.add(line);
      else signal = /^subprocess exited on (.*)$/.exec(line)?.[1] ?? signal;
    },
    subject: () => (step === null ? 'The build' : place()),
    excerpt,
    reason: () =>
      error === '' ? null : `${place()}: ${explain(hide(error), hide(step?.text ?? ''), excerpt(), signal)}`,
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
    (id) => `the secret ${id} is not a variable of the application that is available at build time.`,
  ],
  [/no space left on device|disk quota exceeded/, () => 'the disk of the build is full.'],
];

function explain(error: string, step: string, last: string, signal: string): string {
  const code = /: exit status (\d+)$/.exec(error)?.[1];
  if (code !== undefined && /^RUN\b/.test(step))
    return `\`${cut(step, 100)}\` ${endOf(Number(code), signal)}${last === '' ? '.' : `: ${endSentence(last)}`}`;
  for (const [pattern, explanation] of CAUSES) {
    const found = pattern.exec(error);
    if (found) return endSentence(cut(explanation(...found.slice(1))));
  }
  return endSentence(cut(causeOf(error)));
}

/** @param signal name of the signal: `killed`, `segmentation fault`; buildah reports exit code 1 then */
function endOf(code: number, signal: string): string {
  if (signal === 'killed') return describeEnd({ code: null, signal: 'SIGKILL' });
  return signal === '' ? describeEnd(signalOf(code)) : `was ended by a signal (${signal})`;
}

/** Removes the operation of buildah, its Go value dumps, and paths on the host. */
function causeOf(error: string): string {
  return error
    .replace(/^building at STEP ".*?": (?=[^"]*$|.*: )/, '')
    .replaceAll(/ ?for step \{.*?\}: /g, ' ')
    .replaceAll(/ *&?\w+\.\w+\{.*\}/g, '')
    .replace(/^resolving mountpoints for container "[^"]*": /, '')
    .replaceAll(/\/\S*\/containers\/(\S+)/g, '$1');
}

/** Go error messages end with the cause. */
function lastPart(text: string): string {
  return text.split(': ').slice(-2).join(': ');
}

function cut(text: string, max: number = FAILURE_EXCERPT_MAX): string {
  const plain = text.replaceAll(/[\u0000-\u001f\u007f]+/g, ' ').trim();
  return cutText(plain, max);
}
