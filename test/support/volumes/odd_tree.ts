// Files of every sort, and what a tree of them is made of.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';

const isRoot = process.getuid?.() === 0;

/** Owners, modes, extended attributes, access lists, links of both kinds, holes, names that are no text. */
export function makeOddFiles(directory: string): void {
  const at = (...names: string[]): string => path.join(directory, ...names);
  mkdirSync(at('deep', 'er'), { recursive: true });
  writeFileSync(at('deep', 'er', 'file'), 'content');
  writeFileSync(at('name\nwith newline'), '1');
  writeFileSync(Buffer.concat([Buffer.from(`${directory}/latin-`), Buffer.from([0xe9])]), '2');
  writeFileSync(at('-rf'), '3');
  writeFileSync(at(' leading and trailing '), '4');
  writeFileSync(at('empty'), '');
  mkdirSync(at('empty directory'), { mode: 0o2770 });
  symlinkSync('/etc', at('to etc'));
  symlinkSync('../../../outside', at('deep', 'upwards'));
  symlinkSync('nowhere', at('dangling'));
  writeFileSync(at('one of two'), 'shared');
  linkSync(at('one of two'), at('deep', 'two of two'));
  writeFileSync(at('executable'), '#!/bin/sh\n');
  chmodSync(at('executable'), 0o4755);
  chmodSync(at('deep', 'er', 'file'), 0o400);
  const sparse = openSync(at('sparse'), 'w');
  writeSync(sparse, 'begin', 0);
  writeSync(sparse, 'end', 64 * 2 ** 20);
  closeSync(sparse);
  truncateSync(at('sparse'), 128 * 2 ** 20);
  execFileSync('setfattr', ['-n', 'user.note', '-v', 'of the user', at('executable')]);
  execFileSync('mkfifo', [at('pipe')]);
  utimesSync(at('one of two'), 1_000_000_000, 1_000_000_000.123);
  chmodSync(directory, 0o2751);
  if (!isRoot) return;
  chownSync(directory, 999, 999);
  chmodSync(directory, 0o2751);
  // acl(5): the user 12345 may read.
  const entries = ['01000600ffffffff', '0200040039300000', '04000400ffffffff', '10000400ffffffff', '20000400ffffffff'];
  const acl = `0x02000000${entries.join('')}`;
  execFileSync('setfattr', ['-n', 'system.posix_acl_access', '-v', acl, at('one of two')]);
  chownSync(at('deep', 'er'), 12_345, 54_321);
  chownSync(at('deep', 'er', 'file'), 4_000_000_000, 100_000);
}

/** All that a copy must have, by name. */
export function listing(directory: string): string[] {
  const root = Buffer.from(directory);
  const inodes = new Map<number, string>();
  const seen: string[] = [];
  const visit = (relative: Buffer): void => {
    const file = Buffer.concat([root, Buffer.from('/'), relative]);
    const stats = lstatSync(file, { bigint: true });
    const name = relative.toString('latin1');
    const kind = (Number(stats.mode) & 0o170000).toString(8);
    const facts: unknown[] = [kind, (Number(stats.mode) & 0o7777).toString(8), stats.uid, stats.gid];
    if (!stats.isSymbolicLink()) facts.push(attributesOf(file), stats.mtimeNs);
    if (stats.isSymbolicLink()) facts.push(readlinkSync(file));
    if (stats.isFile()) {
      facts.push(stats.size, createHash('sha256').update(readFileSync(file)).digest('hex'));
      const first = inodes.get(Number(stats.ino));
      facts.push(first === undefined ? stats.nlink : `the same as ${first}`);
      inodes.set(Number(stats.ino), name);
      if (stats.size > 2 ** 20) facts.push(`holes: ${stats.blocks * 512n < stats.size / 2n}`);
    }
    seen.push(`${name} ${facts.join(' ')}`);
    if (stats.isDirectory())
      for (const entry of readdirSync(file, { encoding: 'buffer' }).sort(Buffer.compare))
        visit(name === '.' ? entry : Buffer.concat([relative, Buffer.from('/'), entry]));
  };
  visit(Buffer.from('.'));
  return seen;
}

function attributesOf(file: Buffer): string {
  // The names of arguments are bytes for these programs, and text for Node.
  const escaped = [...file].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
  const text = execFileSync('bash', ['-c', `f=$(printf "$1."); f=\${f%.}; ${SCRIPT}`, 'list', escaped]).toString();
  return text
    .split('\n')
    .filter((line) => line.includes('='))
    .sort()
    .join(',');
}

const SCRIPT = 'getfattr -d -m - -e hex --absolute-names -- "$f" 2>/dev/null || :';
