/** @tier heavy @quarter 1 @covers tools/release/release.mjs tools/scripts/build.mjs */
// A release is made of a commit; install.sh installs it on a machine without Node, and removes it.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { version } from '../../package.json';
import { freePort } from '../support/processes/free_port';
import { archiveName, releaseOfToday } from '../support/releases/release';
import { needs } from '../support/runner/programs';
import { ROOT, WITHOUT_DISKS } from '../support/runner/repository';

jest.setTimeout(600_000);
const run = promisify(execFile);
const NAME = archiveName();
/** Directories in which the installation writes are over those of this machine; systemd and Node.js are not there. */
const FRESH = `
set -e
mount -t tmpfs tmpfs "$1"
for directory in /etc /opt /usr/local /var/lib; do
  over=$1/$(echo "$directory" | tr / _)
  mkdir "$over" "$over/upper" "$over/work"
  mount -t overlay overlay -o "lowerdir=$directory,upperdir=$over/upper,workdir=$over/work" "$directory"
done
mount -t tmpfs tmpfs /run
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
`;

let home: string;
beforeAll(() => (home = mkdtempSync(path.join(tmpdir(), 'release-'))));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function fresh(script: string): ChildProcess {
  const scratch = mkdtempSync(path.join(home, 'fresh-'));
  const apart = ['--mount', '--propagation', 'slave', 'sh', WITHOUT_DISKS];
  const words = [...apart, 'bash', '-c', FRESH + script, 'fresh', scratch];
  return spawn('unshare', words, { cwd: home, env: { HOME: '/root' } });
}

async function outputOf(child: ChildProcess): Promise<string> {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const code = await new Promise((resolve) => child.on('close', resolve));
  return `${text}exit code ${String(code)}`;
}

const asRoot = process.getuid?.() === 0 ? needs('git', 'tar', 'unshare', 'flock') : { test: test.skip };

asRoot.test('a release names its parts and its origin, and is installed, started and removed', async () => {
  const first = await releaseOfToday();
  expect(readdirSync(first).sort()).toEqual(
    [
      'SHA256SUMS',
      `${NAME}.cdx.json`,
      `${NAME}.provenance.json`,
      `${NAME}.tar.gz`,
      `platform-cli-${version}.tgz`,
    ].sort(),
  );
  const sums = readFileSync(path.join(first, 'SHA256SUMS'), 'utf8');
  for (const [, sum, file] of sums.matchAll(/^(\w+) {2}(\S+)$/gm))
    expect(
      createHash('sha256')
        .update(readFileSync(path.join(first, file as string)))
        .digest('hex'),
    ).toBe(sum);
  const { components } = JSON.parse(readFileSync(path.join(first, `${NAME}.cdx.json`), 'utf8'));
  const names = components.map(({ name }: { name: string }) => name);
  expect(names).toEqual(expect.arrayContaining(['graphql', 'npm', `node-linux-${process.arch}`, 'platform-dashboard']));
  expect(names).not.toContain('jest');
  const { predicate } = JSON.parse(readFileSync(path.join(first, `${NAME}.provenance.json`), 'utf8'));
  const { stdout } = await run('git', ['rev-parse', 'HEAD'], { cwd: ROOT });
  expect(predicate.buildDefinition.resolvedDependencies[0].digest).toEqual({ gitCommit: stdout.trim() });

  await run('tar', ['-xzf', path.join(first, `${NAME}.tar.gz`), '-C', home]);
  const ports = { PORT: await freePort(), INGRESS_PORT: await freePort(), S3_PORT: await freePort(), ADMIN_PORT: 0 };
  const others = { REGISTRY_PORT: await freePort(), DNS_PORT: 0, SMTP_PORTS: await freePort(), NETWORK: 'shared' };
  writeFileSync(
    path.join(home, 'env'),
    Object.entries({ ...ports, ...others })
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  );
  const base = `http://127.0.0.1:${ports.PORT}`;
  const text = await outputOf(
    fresh(`
      # As one that was killed has left it.
      mkdir -p /opt/platform/0.0.1 /etc/platform
      ln -s 0.0.1 /opt/platform/.current
      echo half >/etc/platform/platform.env.new
      cp -al ${NAME} cut && rm -r cut/app/templates
      cp -al ${NAME} changed && rm changed/app/LICENSE && tr c d <${NAME}/app/LICENSE >changed/app/LICENSE
      for broken in cut changed; do $broken/install.sh --no-packages && exit 1; done
      [ "$(ls /opt/platform)" = 0.0.1 ]
      ${NAME}/install.sh --no-packages
      [ "$(readlink /opt/platform/current)" = ${version} ] && ! grep half /etc/platform/*
      ${NAME}/install.sh --no-packages
      cat env >> /etc/platform/platform.env
      [ "$(stat -c '%a %U' /etc/platform/platform.env)" = '600 root' ]
      platform version
      svc --version
      platform start >log 2>&1 & service=$!
      for turn in $(seq 240); do grep -q '"ready"' log && break; sleep 0.5; done; grep -q ready log || cat log
      node=/opt/platform/current/bin/node
      for page in / /v2/openapi.yaml; do
        $node -e 'fetch(process.argv[1], { headers: { accept: "text/html, application/yaml" } })
          .then(async (answer) => console.log(answer.status, (await answer.text()).slice(0, 80)))' "${base}$page"
      done
      platform doctor | grep -E '^(settings|database|programs)'
      kill $service && wait $service || true
      ${NAME}/install.sh --uninstall --purge /etc || true
      [ -e /var/lib/platform-api/first-key.json ]
      ${NAME}/install.sh --uninstall
      [ ! -e /opt/platform ] && [ -e /var/lib/platform-api/first-key.json ]
      ${NAME}/install.sh --uninstall --purge /var/lib/platform-api
      [ ! -e /var/lib/platform-api ] && [ ! -e /etc/platform ]
    `),
  );
  for (const broken of ['cut', 'changed'])
    expect(text).toContain(
      `install.sh: ${home}/${broken} is not the whole release: remove it, download the archive again, and unpack it`,
    );
  expect(text).toContain(`Platform ${version} is installed. There is no systemd here. To start it: platform start`);
  expect(text).toContain(`\n${version}\n${version}\n`);
  expect(text).toMatch(/200 <!doctype html>/);
  expect(text).toContain(`"version":"${version}"`);
  expect(text).toMatch(/^database +ok +PostgreSQL .*embedded/m);
  expect(text).toContain('the data are in /var/lib/platform-api, not in /etc: nothing was removed');
  expect(text).toMatch(/exit code 0$/);
});

needs('systemd-analyze').test('its units are some that systemd knows every line of', async () => {
  const script = readFileSync(path.join(ROOT, 'tools/release/install.sh'), 'utf8');
  const units = [...script.matchAll(/cat <<END\n(\[Unit\][^]*?)^END$/gm)].map(([, unit]) => unit as string);
  expect(units).toHaveLength(2);
  for (const [index, unit] of units.entries()) {
    const file = path.join(home, `platform-${index}.service`);
    const text = unit.replaceAll('\\\\', '\\').replaceAll('$PREFIX/current/bin/platform', '/bin/true');
    writeFileSync(file, text.replaceAll('$PREFIX', '/opt'));
    const { stdout, stderr } = await run('systemd-analyze', ['verify', '--man=no', file]);
    expect(stdout + stderr).toBe('');
  }
});
