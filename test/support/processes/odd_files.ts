// Files as tenants have them, of which a copy loses something easily.
import { execFileSync, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import path from 'node:path';

const SPARSE_BYTES = 5 * 2 ** 30;

/** Makes them in a directory that is there. Returns what of them the file system of the tests can have. */
export function makeOddFiles(directory: string): void {
  const at = (name: string): Buffer => Buffer.from(`${directory}/${name}`, 'latin1');
  fs.writeFileSync(at('plain'), 'x'.repeat(1000));
  fs.linkSync(at('plain'), at('hard link'));
  fs.symlinkSync('/etc/passwd', at('absolute'));
  fs.symlinkSync('../../../../..', at('upwards'));
  fs.symlinkSync('nowhere', at('dangling'));
  for (const name of ['caf\xe9', 'new\nline', '-rf', 'tar: x', `${'d'.repeat(100)}\xe9${'e'.repeat(100)}`, '*', '[a'])
    fs.writeFileSync(at(name), `of ${name}`);
  fs.mkdirSync(at(`${'d'.repeat(200)}/${'e'.repeat(200)}/${'f'.repeat(200)}`), { recursive: true });
  // Only root gets into one that nobody may enter.
  fs.mkdirSync(at('closed'), { mode: process.getuid?.() === 0 ? 0 : 0o700 });
  fs.writeFileSync(at('set-user-id'), 's');
  fs.chmodSync(at('set-user-id'), 0o4751);
  fs.utimesSync(at('-rf'), 1, 1);
  execFileSync('mkfifo', ['--', path.join(directory, 'fifo')]);
  spawnSync('setfattr', ['-n', 'user.kept', '-v', 'value', '--', path.join(directory, 'plain')]);
  const sparse = fs.openSync(at('sparse'), 'w');
  fs.writeSync(sparse, '!', SPARSE_BYTES - 1);
  fs.closeSync(sparse);
}

/** Names, kinds, modes, owners, times, targets, links and content of what is below a directory. */
export function listingOf(directory: string): string {
  const found = (format: string, ...words: string[]): string =>
    execFileSync('find', ['.', ...words, '-printf', format], { cwd: directory, encoding: 'latin1' });
  const sums = execFileSync('sh', ['-c', 'find . -type f -size -2M -exec sha256sum {} + | sort'], {
    ...{ cwd: directory, encoding: 'latin1' },
  });
  const lines = found('%p %y %m %U %G %T@ %l %n %s\\0', '-mindepth', '1', '-not', '-type', 'd');
  const folders = found('%p %m %U %G\\0', '-mindepth', '1', '-type', 'd');
  const kept = spawnSync('getfattr', ['-n', 'user.kept', '--', 'plain'], { cwd: directory, encoding: 'latin1' });
  return [...lines.split('\0').sort(), ...folders.split('\0').sort(), sums, kept.stdout].join('\n');
}
