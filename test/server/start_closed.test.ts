// Directories that other users cannot enter: as root, PostgreSQL and applications run as users of their own.
import { chmodSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { startProgram } from '../support/processes/program';
import { database, directory, setUpStarts } from '../support/processes/start_cases';

jest.setTimeout(120_000);
setUpStarts();

const asRoot = process.getuid?.() === 0 ? test : test.skip;

/** A directory that only its owner may enter. */
function closed(...names: string[]): string {
  const made = directory(path.join(...names));
  mkdirSync(made, { recursive: true });
  chmodSync(made, 0o700);
  return made;
}

/** Status of the first deployment of a preset, with the first key of a data directory; its application ends. */
async function deployPreset(dir: string): Promise<string> {
  const { key, project_id, base_url } = JSON.parse(readFileSync(path.join(dir, 'first-key.json'), 'utf8')) as Record<
    string,
    string
  >;
  const call = async (method: string, target: string, body?: object): Promise<{ id: string; status: string }> => {
    const response = await fetch(base_url + target, {
      method,
      headers: {
        Authorization: `Bearer ${key}`,
        'X-Svc-Project': String(project_id),
        'Content-Type': 'application/json',
        Prefer: 'wait=60',
      },
      body: body && JSON.stringify(body),
    });
    return (response.status === 204 ? {} : await response.json()) as { id: string; status: string };
  };
  const { id } = await call('POST', '/v2/applications', { name: 'shop', preset: 'node-web' });
  const { status } = await call('POST', `/v2/applications/${id}/deployments`, {});
  await call('DELETE', `/v2/applications/${id}`);
  return status;
}

test('a closed data directory with a blank in its name, and a strict umask, serve applications', async () => {
  const dir = closed('a data directory');
  const umask = process.umask(0o077);
  const program = startProgram({ PLATFORM_DATA_DIR: dir, SANDBOX: 'none' });
  process.umask(umask);
  await program.ready();
  expect(await deployPreset(dir)).toBe('active');
  expect(statSync(path.join(dir, 'first-key.json')).mode & 0o777).toBe(0o600);
  expect(statSync(path.join(dir, 'secret-key')).mode & 0o777).toBe(0o600);
  program.signal('SIGTERM');
  expect([await program.ended, program.err()]).toEqual([0, '']);
});

asRoot('a closed folder above the data directory is named at the start, with the command that opens it', async () => {
  const above = closed("somebody's");
  const settings = { DATABASE_URL: await database(true), PLATFORM_DATA_DIR: path.join(above, 'data') };
  const program = startProgram({ ...settings, SANDBOX: 'none' });
  await program.ready();
  const lines = program
    .out()
    .split('\n')
    .filter((line) => line.includes('Applications cannot be deployed'));
  expect(lines.map((line) => (JSON.parse(line) as { level: string; command: string }).command)).toEqual([
    `chmod o+x '${above.replaceAll("'", `'\\''`)}'`,
  ]);
  program.signal('SIGTERM');
  await program.ended;
});
