import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadKeyRing, parseKeyRing, secretBox } from '../../core/secrets';
import { StartupError } from '../../core/startup_error';
import { compileCore } from './compiled';

const CONTEXT = 'environment_variables:app_1:DATABASE_URL';
const box = secretBox([{ id: 'one', key: randomBytes(32) }]);

describe('the box', () => {
  test.each(['', 'x', 'schön \u{1f600}\n', 'a'.repeat(32_768)])('opens what it sealed (%#)', (plain) => {
    const sealed = box.seal(plain, CONTEXT);
    expect(sealed).toMatch(/^v1\.one\.[\w-]+$/);
    expect(box.open(sealed, CONTEXT)).toBe(plain);
  });

  test('seals the same value differently each time', () => {
    expect(new Set(Array.from({ length: 100 }, () => box.seal('same', CONTEXT))).size).toBe(100);
  });

  test('refuses an alteration of any character', () => {
    const sealed = box.seal('a secret value', CONTEXT);
    for (let i = 0; i < sealed.length; i += 1) {
      for (const other of ['A', 'b', '0', '-', '_', '.', '=', '+']) {
        if (sealed[i] !== other)
          expect(() => box.open(sealed.slice(0, i) + other + sealed.slice(i + 1), CONTEXT)).toThrow();
      }
    }
  });

  test('refuses another context, a cut value and another key', () => {
    const sealed = box.seal('a secret value', CONTEXT);
    expect(() => box.open(sealed, `${CONTEXT}2`)).toThrow('belongs elsewhere');
    expect(() => box.open(sealed.slice(0, -4), CONTEXT)).toThrow();
    expect(() => box.open('v1.one.', CONTEXT)).toThrow('not a sealed value');
    expect(() => secretBox([{ id: 'one', key: randomBytes(32) }]).open(sealed, CONTEXT)).toThrow('altered');
    expect(() => secretBox([{ id: 'two', key: randomBytes(32) }]).open(sealed, CONTEXT)).toThrow('"one"');
  });

  test('after a rotation seals with the new key and still opens the old', () => {
    const old = { id: 'old', key: randomBytes(32) };
    const sealed = secretBox([old]).seal('value', CONTEXT);
    const rotated = secretBox([{ id: 'new', key: randomBytes(32) }, old]);
    expect(rotated.open(sealed, CONTEXT)).toBe('value');
    expect(rotated.prefix).toBe('v1.new.');
    expect(rotated.seal('value', CONTEXT)).toMatch(/^v1\.new\./);
  });

  test('hashes depend on value, purpose and key', () => {
    const hash = box.hmac('value', 'a');
    expect(hash).toMatch(/^[0-9a-f]{64}$/);
    expect(box.hmac('value', 'a')).toBe(hash);
    expect(
      new Set([
        hash,
        box.hmac('value', 'b'),
        box.hmac('other', 'a'),
        secretBox([{ id: 'x', key: randomBytes(32) }]).hmac('value', 'a'),
      ]).size,
    ).toBe(4);
  });

  test('sub-keys have 32 bytes and differ by purpose', () => {
    expect(box.subKey('cursors').symmetricKeySize).toBe(32);
    expect(box.subKey('cursors').equals(box.subKey('cursors'))).toBe(true);
    expect(box.subKey('cursors').equals(box.subKey('sessions'))).toBe(false);
  });
});

describe('the key ring', () => {
  const key = randomBytes(32);

  test.each([key.toString('base64'), key.toString('base64url'), key.toString('hex'), ` ${key.toString('base64')}\n`])(
    'reads %#',
    (text) => {
      expect(parseKeyRing(text)).toEqual([{ id: expect.stringMatching(/^[0-9a-f]{8}$/), key }]);
    },
  );

  test('reads a list whose first key is the current one', () => {
    const other = randomBytes(32);
    expect(parseKeyRing(`2026-02:${key.toString('base64')}, 2026-01:${other.toString('hex')}`)).toEqual([
      { id: '2026-02', key },
      { id: '2026-01', key: other },
    ]);
  });

  test.each([
    '',
    ',',
    'x',
    key.toString('base64').slice(4),
    `a:${key.toString('hex')},a:${randomBytes(32).toString('hex')}`,
    `A.b:${key.toString('hex')}`,
    `${key.toString('hex')},`,
  ])('refuses %#', (text) => expect(parseKeyRing(text)).toBeNull());

  test('a malformed setting is named, not repeated', () => {
    expect(() => loadKeyRing({ setting: 'hunter2', dataDir: '/nowhere' })).toThrow(StartupError);
    expect(() => loadKeyRing({ setting: 'hunter2', dataDir: '/nowhere' })).toThrow(
      /^PLATFORM_SECRET_KEY is malformed(?!.*hunter2)/,
    );
  });
});

describe('the key file', () => {
  let directory: string;
  beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'platform-secrets-'))));
  afterEach(() => rmSync(directory, { recursive: true }));
  const load = (dataDir = directory) => loadKeyRing({ setting: null, dataDir });
  const file = () => join(directory, 'secret-key');

  test('is made once, for its owner alone, and read again', () => {
    const first = load();
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(load()).toEqual(first);
    expect(readdirSync(directory)).toEqual(['secret-key']);
  });

  test('a missing data directory is made', () => {
    expect(load(join(directory, 'a', 'b'))).toHaveLength(1);
  });

  test('a loosened mode is repaired', () => {
    load();
    chmodSync(file(), 0o644);
    load();
    expect(statSync(file()).mode & 0o777).toBe(0o600);
  });

  test('the setting wins over the file', () => {
    const [made] = load();
    const [set] = loadKeyRing({ setting: randomBytes(32).toString('hex'), dataDir: directory });
    expect(set?.key).not.toEqual(made?.key);
    expect(readFileSync(file(), 'utf8').trim()).toBe(made?.key.toString('base64'));
  });

  test('a damaged file stops the start and is not replaced', () => {
    writeFileSync(file(), 'hunter2');
    expect(() => load()).toThrow(/secret-key is malformed(?!.*hunter2)/);
    expect(readFileSync(file(), 'utf8')).toBe('hunter2');
  });

  test('a directory that cannot be written stops the start in one line', () => {
    writeFileSync(join(directory, 'plain'), '');
    const below = join(directory, 'plain', 'data');
    expect(() => load(below)).toThrow(StartupError);
    expect(() => load(below)).toThrow(/^the key file \S+ cannot be read or made: \w+$/);
  });

  test('processes that start at once agree on one key', async () => {
    compileCore(directory, 'secrets', 'directory', 'startup_error');
    const program = join(directory, 'main.js');
    writeFileSync(
      program,
      `
      const { loadKeyRing } = require('./secrets');
      process.once('message', () => {
        const [first] = loadKeyRing({ setting: null, dataDir: process.argv[2] });
        process.send(first.id, () => process.disconnect());
      });
      process.send('ready');`,
    );
    const ids = await race(program, join(directory, 'data'));
    expect(ids).toHaveLength(6);
    expect(new Set(ids).size).toBe(1);
    expect(readdirSync(join(directory, 'data'))).toEqual(['secret-key']);
  });
});

/** Starts six processes, lets them go together, and collects what they loaded. */
async function race(program: string, ...args: string[]): Promise<unknown[]> {
  const children = Array.from({ length: 6 }, () => fork(program, args));
  const next = (child: (typeof children)[number]): Promise<unknown> =>
    new Promise((resolve) => child.once('message', resolve));
  await Promise.all(children.map(next));
  const answers = children.map(next);
  for (const child of children) child.send('go');
  return Promise.all(answers);
}
