/** @tier heavy @quarter 1 @covers tools/release */
// A bare Debian with systemd: the release before is installed, upgraded to that of today, and comes back.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from '../support/processes/free_port';
import { archiveName, releaseOfBefore, releaseOfToday } from '../support/releases/release';
import { bootDebian, type Machine } from '../support/releases/debian';
import { buildReleaseBefore, hasReleaseBefore } from '../support/releases/before';
import { named, needs } from '../support/runner/programs';
import { migrationNames } from '../support/releases/schema_changes';

jest.setTimeout(900_000);
const CAPABLE = process.getuid?.() === 0 && hasReleaseBefore;
const { test: it } = CAPABLE
  ? needs('debootstrap', 'systemd-nspawn', 'nsenter', 'flock', 'git')
  : { test: named(test.skip, ' (needs: root, the history of Git)') as jest.It };

let home: string;
let machine: Machine | undefined;
beforeAll(() => (home = mkdtempSync(path.join(tmpdir(), 'installed-'))));
afterAll(async () => {
  await machine?.remove();
  rmSync(home, { recursive: true, force: true });
});

it('installs the release before, upgrades it to this one, and goes back', async () => {
  const before = buildReleaseBefore();
  const [older, newer] = [await releaseOfBefore(), await releaseOfToday()];
  machine = await bootDebian(home, 'bare');
  const port = await freePort();
  const others = ['S3_PORT', 'REGISTRY_PORT', 'DNS_PORT', 'SMTP_PORTS', 'MX_PORT', 'ADMIN_PORT'];
  const settings = [`PORT=${port}`, `INGRESS_PORT=${await freePort()}`, ...others.map((name) => `${name}=0`)];
  const unpack = async (directory: string, name: string, folder: string): Promise<void> => {
    copyFileSync(path.join(directory, `${name}.tar.gz`), path.join(machine!.root, `root/${folder}.tar.gz`));
    await machine!.run(`mkdir ${folder} && tar -xzf ${folder}.tar.gz -C ${folder} --strip-components=1`);
  };
  await unpack(older, archiveName(before.version), 'before');
  await unpack(newer, archiveName(), 'today');
  const dashboard = async (): Promise<string> =>
    fetch(`http://127.0.0.1:${port}/`, { headers: { accept: 'text/html' } }).then((page) => page.text());
  const release = (): Promise<string> => machine!.run('cat /opt/platform/current/RELEASE');
  const volumes = (): Promise<string> => machine!.run(`${CALL} volumes http://127.0.0.1:${port}`);

  await machine.run(`before/install.sh --no-start; printf '${settings.join('\\n')}\\n' >>/etc/platform/platform.env`);
  expect(await machine.run('before/install.sh')).toContain(`Platform ${before.version} runs at`);
  expect(await dashboard()).toContain('<!doctype html>');
  expect(await machine.run(`${CALL} volume http://127.0.0.1:${port}`)).toContain('201');
  const ofBefore = await release();

  expect(await machine.run('today/install.sh')).toContain('runs at');
  expect(await release()).toBe(await machine.run('cat today/RELEASE'));
  expect(await dashboard()).toContain('<!doctype html>');
  expect(await volumes()).toContain('"name":"kept"');
  expect(await machine.run('today/install.sh')).toContain('nothing was changed');

  const isNewer = migrationNames('migrations').some((name) => !before.migrations.includes(name));
  if (isNewer && before.refusesNewerSchema) return;
  expect(await machine.run('before/install.sh')).toContain('runs at');
  expect(await release()).toBe(ofBefore);
  expect(await volumes()).toContain('"name":"kept"');
});

/** Of the machine's own Node.js, which is all that it has. */
const CALL = `/opt/platform/current/bin/node -e '
  const { key, project_id } = JSON.parse(require("node:fs").readFileSync("/var/lib/platform-api/first-key.json"));
  const headers = { authorization: "Bearer " + key, "x-svc-project": project_id, "content-type": "application/json" };
  const [what, base] = process.argv.slice(1);
  const body = what === "volume" && JSON.stringify({ name: "kept", size_gb: 1 });
  fetch(base + "/v2/volumes", { headers, ...(body && { method: "POST", body }) })
    .then(async (answer) => console.log(answer.status, await answer.text()))'`;
