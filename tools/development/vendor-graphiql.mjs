// Brings GraphiQL's ready-made files into rest/console/graphiql. As a dependency it would install a hundred packages
// that nothing uses at run time. `--check` writes nothing and fails if a file differs from the packages named here.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const target = fileURLToPath(new URL('../../rest/console/graphiql/', import.meta.url));

const packages = [
  {
    name: 'graphiql@4.1.2',
    integrity: 'sha512-rNlzQIAzm6i2KBXmVQWBgLvt0TloxFVB2d18bukvdsvjEuFDHsKx5IVOomL1W1o5WW+tE54+ioHb2AEKzO2cUg==',
    files: {
      'graphiql.min.js': 'graphiql.min.js',
      'graphiql.min.css': 'graphiql.min.css',
      LICENSE: 'LICENSE.graphiql.txt',
    },
  },
  {
    name: 'react@18.3.1',
    integrity: 'sha512-wS+hAgJShR0KhEvPJArfuPVN1+Hz1t0Y6n5jLrGQbkb4urgPE/0Rve+1kMB1v/oWgHgm4WIcV+i7F2pTVj+2iQ==',
    files: { 'umd/react.production.min.js': 'react.min.js', LICENSE: 'LICENSE.react.txt' },
  },
  {
    name: 'react-dom@18.3.1',
    integrity: 'sha512-5m4nQKp+rZRb09LNH59GM4BxTh9251/ylbKIbpe7TpGxfJ+9kv6BLkLBXIjjspbgbnIBNqlI23tRnTWT0snUIw==',
    files: { 'umd/react-dom.production.min.js': 'react-dom.min.js' },
  },
];

const check = process.argv.includes('--check');
const folder = mkdtempSync(join(tmpdir(), 'graphiql-'));
let differing = 0;
try {
  for (const entry of packages) unpack(entry);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit(differing ? 1 : 0);

function unpack({ name, integrity, files }) {
  const archive = join(
    folder,
    execFileSync('npm', ['pack', name, '--silent'], { cwd: folder, encoding: 'utf8' }).trim(),
  );
  const found = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;
  if (found !== integrity) throw new Error(`${name}: integrity is ${found}`);
  for (const [inside, outside] of Object.entries(files)) place(archive, inside, outside);
}

function place(archive, inside, outside) {
  const content = execFileSync('tar', ['-xzOf', archive, `package/${inside}`], { maxBuffer: 64 * 1024 * 1024 });
  // The source maps are not shipped; a reference to them would only make a 404.
  const text = content
    .toString('utf8')
    .replace(/\n?(?:\/\/# sourceMappingURL=.*|\/\*# sourceMappingURL=.*\*\/)\s*$/, '\n');
  if (!check) return writeFileSync(join(target, outside), text);
  if (readFileSync(join(target, outside), 'utf8') === text) return;
  console.error(`${outside} differs from the package`);
  differing += 1;
}
