// The uppermost layer of a release image: how its process types are started, as a host starts them
// (drivers/runtime/sandbox/launch.ts), and the user that they run as.
import { INIT_LINES } from './init_script';
import type { TarEntry } from './tar_entry';

export const LAUNCH = '/platform/launch';
/** First argument of LAUNCH for a command of its own, then the command and the process type whose place it has. */
export const RUN_COMMAND = '-c';
export const FILES_DIRECTORY = '/app';
/** User and group of programs and files. */
export const RELEASE_USER = 10_001;
export const DEFAULT_PORT = '8080';
const ACCOUNT = 'app';

interface LaunchParts {
  root_directory: string;
  processes: Record<string, string>;
  /** Directories of programs that come after those that the build has left. */
  programs: readonly string[];
  accounts: { passwd: string; group: string };
}

export function launchEntries({ root_directory, processes, programs, accounts }: LaunchParts): TarEntry[] {
  const types = Object.entries(processes).sort(([one], [other]) => (one < other ? -1 : 1));
  return [
    directory('etc'),
    file('etc/group', withLine(accounts.group, `${ACCOUNT}:x:${RELEASE_USER}:`)),
    file(
      'etc/passwd',
      withLine(accounts.passwd, `${ACCOUNT}:x:${RELEASE_USER}:${RELEASE_USER}::${FILES_DIRECTORY}:/bin/sh`),
    ),
    directory('platform'),
    file('platform/launch', launchScript(root_directory, programs), 0o755),
    directory('platform/processes'),
    ...types.map(([type, command]) => file(`platform/processes/${type}`, `${command}\n`)),
  ];
}

/** Reads nothing that a tenant could have put in its way but what its own build has left. */
function launchScript(root: string, programs: readonly string[]): string {
  const start = root === '.' ? FILES_DIRECTORY : `${FILES_DIRECTORY}/${root}`;
  return [
    '#!/bin/sh',
    '# Starts a process type of the release: /platform/launch web',
    '# or another command in its place:      /platform/launch -c "command" web',
    'command=',
    `if [ "\${1:-}" = ${RUN_COMMAND} ]; then command=$2; shift 2; fi`,
    'type=${1:-web}',
    `case $type in *[!a-z0-9_-]*) type=; esac`,
    'file=/platform/processes/$type',
    'if [ -z "$command" ] && { [ -z "$type" ] || [ ! -f "$file" ]; }; then',
    `  echo "The release has no process type \${1:-web}. It has: $(ls /platform/processes | tr '\\n' ' ')" >&2`,
    '  exit 126',
    'fi',
    'umask 022',
    `cd ${quoted(start)} || exit 126`,
    'unset LC_ALL OLDPWD',
    `export HOME="\${HOME:-${FILES_DIRECTORY}}" LANG="\${LANG:-C.UTF-8}" TMPDIR="\${TMPDIR:-/tmp}"`,
    'export SVC_PROCESS_TYPE="$type"',
    // Requests come from outside of the container.
    'export SVC_LISTEN_ADDRESS=0.0.0.0',
    // Other commands get no requests.
    `if [ -n "$command" ]; then unset PORT; else export PORT="\${PORT:-${DEFAULT_PORT}}"; fi`,
    ...(programs.length ? [`export PATH=${quoted(`${programs.join(':')}:`)}"$PATH"`] : []),
    '[ ! -r .platform/profile ] || . ./.platform/profile',
    'set -- /bin/sh -c "${command:-$(cat "$file")}"',
    ...INIT_LINES,
    '',
  ].join('\n');
}

function withLine(text: string, line: string): string {
  const isTaken = text
    .split('\n')
    .some((one) => one.startsWith(`${ACCOUNT}:`) || one.split(':')[2] === `${RELEASE_USER}`);
  return isTaken ? text : `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${line}\n`;
}

function directory(name: string): TarEntry {
  return { name: Buffer.from(name), type: 'directory', mode: 0o755, owner: 0, size: 0 };
}

function file(name: string, text: string, mode = 0o644): TarEntry {
  const content = Buffer.from(text);
  return { name: Buffer.from(name), type: 'file', mode, owner: 0, size: content.length, content: () => once(content) };
}

async function* once(content: Buffer): AsyncGenerator<Buffer> {
  yield await Promise.resolve(content);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
