// A signal that arrives while a start ends.
import { spawnSync } from 'node:child_process';
import path from 'node:path';

const root = path.resolve(__dirname, '../..');
const HOOK = path.join(root, 'test/support/runner/typescript.js');

const PROGRAM = `
const { exitOnSignal, stopOnSignal } = require('${root}/server/program.ts');
const log = { info: (...words) => console.log(words.pop()), flush() {} };
exitOnSignal();
process.kill(process.pid, 'SIGTERM');
stopOnSignal({ log, close: async () => {} }, { close: async () => {} });
setTimeout(() => process.exit(7), 10_000);
`;

test('a signal that is delivered before the program listens for it stops the program', () => {
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--require', HOOK, '-e', PROGRAM], {
    encoding: 'utf8',
  });
  expect([stdout, stderr, status]).toEqual(['stopping\nstopped\n', '', 0]);
});
