/** @tier heavy @quarter 1 @covers Dockerfile tools/release */
// The image that Dockerfile makes of a release: built by buildah, started as a user without rights, with a PostgreSQL
// elsewhere.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createEmptyDatabase } from '../support/databases/database';
import { freePort } from '../support/processes/free_port';
import { until } from '../support/processes/start_cases';
import {
  IMAGE_PROGRAMS,
  PLATFORM_IMAGE,
  buildPlatformImage,
  obstacleToImage,
  openImageBuild,
  type ImageBuild,
} from '../support/releases/platform_image';
import { named, needs } from '../support/runner/programs';

jest.setTimeout(900_000);
const obstacle = obstacleToImage();
const it = obstacle === null ? needs(...IMAGE_PROGRAMS).test : (named(test.skip, ` (needs: ${obstacle})`) as jest.It);

let home: string;
let build: ImageBuild;
beforeAll(() => {
  home = mkdtempSync(path.join(tmpdir(), 'image-'));
  build = openImageBuild(home);
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

it('is built of the release, starts as a user without rights, is well, and ends by SIGTERM', async () => {
  const { buildah, storage } = build;
  await buildPlatformImage(build, home);
  const container = await buildah('from', PLATFORM_IMAGE);
  const { Docker } = JSON.parse(await buildah('inspect', container)) as {
    Docker: { config: { Entrypoint: string[]; Cmd: string[]; User: string; Healthcheck: { Test: string[] } } };
  };
  const { Entrypoint, Cmd, User, Healthcheck } = Docker.config;
  expect(User).toBe('10001:10001');
  const [port, database] = [await freePort(), await createEmptyDatabase()];
  const others = ['S3_PORT', 'REGISTRY_PORT', 'DNS_PORT', 'SMTP_PORTS', 'MX_PORT', 'ADMIN_PORT'];
  const settings = [`PORT=${port}`, `INGRESS_PORT=${await freePort()}`, ...others.map((name) => `${name}=0`)];
  const start = (more: string[]) => {
    const env = [...settings, ...more].flatMap((setting) => ['--env', setting]);
    const words = [...storage, 'run', '--isolation', 'chroot', ...env, container, ...Entrypoint, ...Cmd];
    const child = spawn('buildah', words, { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (output += text.toString()));
    return { child, output: () => output, ended: once(child, 'close') as Promise<[number | null]> };
  };

  const without = start([]);
  expect((await without.ended)[0]).toBe(1);
  expect(without.output()).toMatch(/platform-api: .*DATABASE_URL/);

  // Over TCP: the socket of the server of the tests is of another user.
  const url = Object.assign(new URL(database.url), { search: '' }).href;
  const platform = start([`DATABASE_URL=${url}`]);
  const answers = async (place: string): Promise<[number, string]> =>
    fetch(`http://127.0.0.1:${port}${place}`, { headers: { accept: 'text/html' } })
      .then(async (answer): Promise<[number, string]> => [answer.status, await answer.text()])
      .catch(() => [0, '']);
  await until(async () => (await answers('/readyz'))[0] === 200 || platform.child.exitCode !== null);
  expect([platform.output(), (await answers('/readyz'))[0]]).toEqual([expect.stringContaining('"ready"'), 200]);
  expect((await answers('/'))[1]).toContain('<!doctype html>');
  const [, ...health] = Healthcheck.Test;
  await buildah('run', '--isolation', 'chroot', '--env', `PORT=${port}`, container, ...health);
  expect(await buildah('run', '--isolation', 'chroot', container, 'id', '-u')).toBe('10001');
  await expect(buildah('run', '--isolation', 'chroot', '--env', 'PORT=1', container, ...health)).rejects.toThrow();

  process.kill(firstProcess(platform.child.pid as number), 'SIGTERM');
  expect((await platform.ended)[0]).toBe(0);
  expect(platform.output()).toContain('"stopped"');
  await database.drop();
});

/** `tini` below the processes of buildah, whose threads start others. */
function firstProcess(pid: number): number {
  const found = findTini(pid);
  if (found === null) throw new Error('tini does not run');
  return found;
}

function findTini(pid: number): number | null {
  if (readFileSync(`/proc/${pid}/comm`, 'utf8') === 'tini\n') return pid;
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  );
  for (const child of children) {
    const found = findTini(child);
    if (found !== null) return found;
  }
  return null;
}
