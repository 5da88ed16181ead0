// Shell scripts in the container of a task with input: clusters have no means to join a program before its first
// output, to end its input without a loss where a connection breaks, or to send it a signal.
import { INNERMOST } from '../../../release_image/init_script';

/** A directory of the pod, for the files of these scripts. */
export const INPUT_DIRECTORY = '/platform/run';

/** In tenths of a second: a program whose client does not come starts all the same. */
const WAITED_TURNS = 150;

/** Around the name of a client: a line of the output that is none of the program. */
const MARK = '\u001e';

/** The line that a client is announced with in the output. @param client of hexadecimal digits */
export function markOf(client: string): string {
  return `${MARK}${client}`;
}

/** Whether a line of the log is such an announcement. */
export function isMark(text: string): boolean {
  return /^\u001e[0-9a-f]{16}\r?$/.test(text);
}

/** The command that waits for the first client, then becomes the program. @param command program and arguments */
export function startScript(command: readonly string[], input: 'pipe' | 'terminal'): string[] {
  const pipe = input === 'pipe';
  const lines = [
    `d=${INPUT_DIRECTORY}`,
    'echo $$ >$d/pid || exit 126',
    // Open before any client writes: an end of the input that comes early waits there.
    ...(pipe ? ['mkfifo $d/stdin_end $d/stdin && exec 8<>$d/stdin_end 9<>$d/stdin || exit 126'] : []),
    'i=0',
    `until [ -e $d/go ] || [ $i -ge ${WAITED_TURNS} ]; do`,
    String.raw`  [ ! -s $d/mark ] || { printf '\036%s\n' "$(cat $d/mark)"; rm -f $d/mark; }`,
    '  sleep 0.1 || sleep 1',
    '  i=$((i + 1))',
    'done',
    ': >$d/started',
    // Holds the input open until a client ends it; an orphan, so that no signal to the program's children meets it.
    ...(pipe
      ? ['( (exec 9>$d/stdin; read -r end <&8) >/dev/null 2>&1 & )', 'exec "$@" <$d/stdin 8<&- 9<&-']
      : ['exec "$@"']),
  ];
  return ['/bin/sh', '-c', lines.join('\n'), 'sh', ...command];
}

/**
 * Reads orders of a client, one on a line, and answers each with a line: `mark <client>` (`marked`, or `started`
 * where the program runs), `go`, `end` of the input, `signal <name>`.
 */
export const CONTROL_COMMAND: readonly string[] = [
  '/bin/sh',
  '-c',
  [
    `d=${INPUT_DIRECTORY}`,
    ...INNERMOST,
    'while read -r order value; do',
    '  case $order in',
    '    mark) if [ -e $d/started ]; then echo started; else printf %s "$value" >$d/mark; echo marked; fi ;;',
    '    go) : >$d/go; echo gone ;;',
    '    end) echo 1<>$d/stdin_end; echo ended ;;',
    '    signal) init_sent=; if innermost "$value" "$(cat $d/pid)"; then echo sent; else echo failed; fi ;;',
    '  esac',
    'done',
  ].join('\n'),
];

/**
 * Copies its standard input to that of the program, once that one has made it. The shell stays: once nobody has the
 * standard output any more, a node closes the standard input too (containerd 1.6).
 */
export const WRITE_COMMAND: readonly string[] = [
  '/bin/sh',
  '-c',
  `d=${INPUT_DIRECTORY}; until [ -p $d/stdin ]; do sleep 0.1 || sleep 1; done; cat >$d/stdin; exit $?`,
];
