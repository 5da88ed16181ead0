/** @tier heavy @quarter 3 @covers tools/demo */
// npm run demo: it ends well, it says so when it does not, and it leaves nothing behind either way.
import { spawn, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { openShow } from '../../tools/demo/show';
import { processesWith } from '../support/processes/processes';

const ROOT = path.resolve(__dirname, '../..');
const LIMIT_MS = 240_000;

interface Ran {
  code: number | null;
  output: string;
}

let temporary = '';

beforeAll(() => {
  temporary = fs.mkdtempSync(path.join(os.tmpdir(), 'demo-test-'));
  fs.chmodSync(temporary, 0o755); // as root, the database and the applications run as other users
});
afterAll(() => fs.rmSync(temporary, { recursive: true, force: true }));

/** @param interruptAt text after which it gets SIGINT */
function demo(env: Record<string, string> = {}, interruptAt?: string): Promise<Ran> {
  const { PATH, HOME } = process.env;
  const child = spawn(process.execPath, ['tools/scripts/start.mjs', 'tools/demo/main.js'], {
    cwd: ROOT,
    env: { PATH, HOME, TMPDIR: temporary, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let isInterrupted = false;
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text: Buffer) => {
      output += text.toString();
      if (isInterrupted || !interruptAt || !output.includes(interruptAt)) return;
      isInterrupted = true;
      child.kill('SIGINT');
    });
  }
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output })));
}

function expectNothingLeft({ output }: Ran): void {
  expect(fs.readdirSync(temporary).filter((name) => name.startsWith('platform-'))).toEqual([]);
  expect(processesWith(temporary)).toEqual([]);
  const application = /app_\w+/.exec(output)?.[0];
  expect(application).toBeDefined();
  expect(processesOf(application as string)).toEqual([]);
}

/** Processes that have it in their environment, as those of an application have its id. */
function processesOf(application: string): string[] {
  if (!fs.existsSync('/proc/self/environ')) return [];
  return fs.readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && fs.readFileSync(`/proc/${pid}/environ`, 'utf8').includes(application);
    } catch {
      return false; // it has ended, or is not ours
    }
  });
}

describe('the demo', () => {
  const hasGit = Boolean(process.env.CI) || spawnSync('git', ['--version']).status === 0;
  const withGit = hasGit ? it : it.skip;

  withGit(
    'shows a first deployment, scaling, a new version, a broken one, the way back and the end (needs git)',
    async () => {
      const ran = await demo();
      expect(ran).toMatchObject({ code: 0 });
      const told = [
        'deployment 1 is active',
        'all three answer',
        'deployment 2 is active',
        'deployment 3 is failed: .*did not listen on PORT \\d+ within 10 seconds',
        'deployment 4 is active',
        '0 processes, 0 open ports, 0 directories',
        'All was as expected',
      ];
      expect(ran.output).toMatch(new RegExp(told.join('[^]*')));
      expect(ran.output.match(/[1-9]\d* requests meanwhile, 0 failed/g)).toHaveLength(4);
      expectNothingLeft(ran);
    },
    LIMIT_MS,
  );

  withGit(
    'clears up when it is interrupted (needs git)',
    async () => {
      const ran = await demo({}, 'It is scaled');
      expect(ran).toMatchObject({ code: 130 });
      expect(ran.output).toContain('Interrupted: clearing up');
      expectNothingLeft(ran);
    },
    LIMIT_MS,
  );

  withGit(
    'ends with 1 where something is not as expected, and clears up (needs git)',
    async () => {
      const ran = await demo({ PATH: `${gitThatFailsAt('Second')}:${process.env.PATH}` });
      expect(ran).toMatchObject({ code: 1 });
      expect(ran.output).toMatch(
        /all three answer[^]*NOT AS EXPECTED: Command failed: git commit[^]*its directory is gone/,
      );
      expectNothingLeft(ran);
    },
    LIMIT_MS,
  );

  it('goes on from an expectation only where it holds', () => {
    const said: string[] = [];
    const show = openShow(
      (text) => said.push(text),
      () => 0,
    );
    show.expect(true, 'the sun shines');
    expect(() => show.expect(false, 'it rains')).toThrow('it rains');
    expect(said).toEqual(['  0.0 s    ok: the sun shines\n']);
  });
});

/** A folder with a git that can't commit a message with this word. */
function gitThatFailsAt(word: string): string {
  const folder = path.join(temporary, 'bin');
  const real = spawnSync('/bin/sh', ['-c', 'command -v git'], { encoding: 'utf8' }).stdout.trim();
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(
    path.join(folder, 'git'),
    `#!/bin/sh\ncase "$*" in *commit*${word}*) exit 9;; esac\nexec ${real} "$@"\n`,
    { mode: 0o755 },
  );
  return folder;
}
