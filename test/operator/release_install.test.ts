/** @tier heavy @quarter 1 @covers tools/release */
// A bare Debian 12 with systemd: the release before is installed, upgraded to that of today, and comes back.
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { version } from '../../package.json';
import { freePort } from '../support/processes/free_port';
import { archiveName, releaseOfBefore, releaseOfToday } from '../support/releases/release';
import { bootDebian, obstacleToBoot, type Machine } from '../support/releases/debian';
import { buildReleaseBefore, hasReleaseBefore } from '../support/releases/before';
import { hasProgram } from '../support/runner/has_program';
import { named, needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';
import { migrationNames } from '../support/releases/schema_changes';

jest.setTimeout(1_800_000);
const NEXT = '1000.0.0';
const PROGRAMS = ['debootstrap', 'systemd-nspawn', 'nsenter', 'flock', 'git'];
const needing = needs(...PROGRAMS);
const obstacle =
  process.getuid?.() !== 0
    ? 'root'
    : ((hasReleaseBefore ? null : 'the history of Git') ??
      (PROGRAMS.every(hasProgram) ? obstacleToBoot('bookworm') : null));
const it = obstacle === null ? needing.test : (named(test.skip, ` (needs: ${obstacle})`) as jest.It);

let home: string;
let machine: Machine | undefined;
let port: number;
beforeAll(() => (home = mkdtempSync(path.join(tmpdir(), 'installed-'))));
afterAll(async () => {
  await machine?.remove();
  rmSync(home, { recursive: true, force: true });
});

it('installs the release before, upgrades it to this one, and goes back', async () => {
  const before = buildReleaseBefore();
  const [older, newer] = [await releaseOfBefore(), await releaseOfToday()];
  machine = await bootDebian(home, 'bare', 'bookworm');
  port = await freePort();
  const others = ['S3_PORT', 'REGISTRY_PORT', 'DNS_PORT', 'SMTP_PORTS', 'MX_PORT', 'ADMIN_PORT'];
  const settings = [`PORT=${port}`, `INGRESS_PORT=${await freePort()}`, ...others.map((name) => `${name}=0`)];
  await unpack(machine, older, archiveName(before.version), 'before');
  await unpack(machine, newer, archiveName(), 'today');
  const release = (): Promise<string> => machine!.run('cat /opt/platform/current/RELEASE');

  await machine.run(`before/install.sh --no-start; printf '${settings.join('\\n')}\\n' >>/etc/platform/platform.env`);
  expect(await machine.run('before/install.sh')).toContain(`Platform ${before.version} runs at`);
  expect(await dashboard()).toContain('<!doctype html>');
  expect(await machine.run(`${CALL} volume http://127.0.0.1:${port}`)).toContain('201');
  const ofBefore = await release();
  const isByCommand =
    before.version !== version && (await machine.run('ls /etc/systemd/system')).includes('platform-upgrade.service');

  if (isByCommand) await upgradeTo(machine, `today/${archiveName()}.tar.gz`);
  else expect(await machine.run('today/install.sh')).toContain('runs at');
  expect(await release()).toBe(await machine.run('cat today/RELEASE'));
  expect(await dashboard()).toContain('<!doctype html>');
  expect(await volumes(machine)).toContain('"name":"kept"');
  expect(await machine.run('today/install.sh')).toContain('nothing was changed');

  const isNewer = migrationNames('migrations').some((name) => !before.migrations.includes(name));
  if (isNewer && before.refusesNewerSchema) return;
  const back = isByCommand ? 'platform rollback' : 'before/install.sh';
  expect(await machine.run(back)).toMatch(isByCommand ? 'is done.' : 'runs at');
  expect(await release()).toBe(ofBefore);
  expect(await volumes(machine)).toContain('"name":"kept"');
});

it('goes to a newer version by one command, which systemd carries out, and back', async () => {
  if (!machine) throw new Error('there is no machine');
  await machine.run('today/install.sh');
  const name = archiveName(NEXT);
  await machine.run(`
    mkdir -p next/${name} && cd next && tar -xzf ../today/${archiveName()}.tar.gz -C ${name} --strip-components=1
    sed -i 's/"version": "${version}"/"version": "${NEXT}"/' ${name}/app/package.json ${name}/app/dist/package.json
    echo ${NEXT} >${name}/VERSION && echo '${NEXT} next' >${name}/RELEASE
    tar -cf - ${name} | gzip -1 >${name}.tar.gz && rm -r ${name} && sha256sum *.tar.gz >SHA256SUMS
  `);
  await upgradeTo(machine, `next/${name}.tar.gz`);
  expect(await machine.run('platform version; systemctl is-active platform')).toBe(`${NEXT}\nactive\n`);
  expect(await dashboard()).toContain('<!doctype html>');
  expect(await machine.run('today/install.sh || true')).toContain(
    `platform ${NEXT} is installed: to go to ${version}, give \`platform upgrade\` the archive of this release`,
  );
  expect(await machine.run('platform rollback')).toContain(`The rollback from ${NEXT} to ${version} is done.`);
  expect(await machine.run('platform version; systemctl is-active platform')).toBe(`${version}\nactive\n`);
  expect(await volumes(machine)).toContain('"name":"kept"');
});

it('is removed with the applications and the ingress, which outlive the service, and leaves the data', async () => {
  if (!machine) throw new Error('there is no machine');
  expect(await machine.run(`${DEPLOY} http://127.0.0.1:${port}`)).toBe('active\n');
  const running = `readlink /proc/[0-9]*/exe | grep -E '^/opt/platform/|bwrap' | sort | uniq || true`;
  expect(await machine.run(running)).toContain('/opt/platform/');
  expect(await machine.run('today/install.sh --uninstall')).toContain('Its data are still in /var/lib/platform-api');
  expect(await machine.run(running)).toBe('');
  const left = 'ls -d /opt/platform /etc/systemd/system/platform* /run/systemd/system/platform* 2>/dev/null || true';
  expect(await machine.run(`${left}; ls /var/lib/platform-api/first-key.json`)).toBe(
    '/var/lib/platform-api/first-key.json\n',
  );
});

it('a disk that is full is one sentence, and so is a service that does not start; it starts when it can', async () => {
  if (!machine) throw new Error('there is no machine');
  const [release, data] = ['/opt', '/var/lib/platform-api'];
  const full = (place: string): Promise<string> =>
    machine!.run(
      `mount -t tmpfs -o size=20m tmpfs ${place}; today/install.sh && exit 1; ls -A ${place}/platform || true`,
    );
  expect(await full(release)).toMatch(
    /^install\.sh: the release could not be copied to \/opt\/platform, and nothing was changed: cp: .* space left.*\n$/,
  );
  await machine.run(`umount ${release}`);
  expect(await full(data)).toMatch(
    /^install\.sh: the service does not start, and systemd goes on trying: .* More: journalctl -u platform\n/,
  );
  await machine.run(`umount --lazy ${data}`);
  const isReady = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await waitFor('the service', isReady, 120_000);
  expect(await volumes(machine)).toContain('"name":"kept"');
});

async function unpack({ root, run }: Machine, directory: string, name: string, folder: string): Promise<void> {
  mkdirSync(path.join(root, 'root', folder));
  for (const file of [`${name}.tar.gz`, 'SHA256SUMS'])
    copyFileSync(path.join(directory, file), path.join(root, 'root', folder, file));
  await run(`cd ${folder} && tar -xzf ${name}.tar.gz --strip-components=1`);
}

async function upgradeTo({ run }: Machine, archive: string): Promise<void> {
  expect(await run(`platform upgrade ${archive}`)).toContain('is done.');
}

async function dashboard(): Promise<string> {
  return fetch(`http://127.0.0.1:${port}/`, { headers: { accept: 'text/html' } }).then((page) => page.text());
}

async function volumes({ run }: Machine): Promise<string> {
  return run(`${CALL} volumes http://127.0.0.1:${port}`);
}

/** Of the machine's own Node.js, which is all that it has. */
const CALL = `/opt/platform/current/bin/node -e '
  const { key, project_id } = JSON.parse(require("node:fs").readFileSync("/var/lib/platform-api/first-key.json"));
  const headers = { authorization: "Bearer " + key, "x-svc-project": project_id, "content-type": "application/json" };
  const [what, base] = process.argv.slice(1);
  const body = what === "volume" && JSON.stringify({ name: "kept", size_gb: 1 });
  fetch(base + "/v2/volumes", { headers, ...(body && { method: "POST", body }) })
    .then(async (answer) => console.log(answer.status, await answer.text()))'`;

const DEPLOY = `/opt/platform/current/bin/node -e '
  const { key, project_id } = JSON.parse(require("node:fs").readFileSync("/var/lib/platform-api/first-key.json"));
  const headers = { authorization: "Bearer " + key, "x-svc-project": project_id, "content-type": "application/json" };
  const call = async (path, body) => {
    const sent = body && { method: "POST", body: JSON.stringify(body) };
    return (await fetch(process.argv[1] + "/v2/applications" + path, { headers, ...sent })).json();
  };
  (async () => {
    const { id } = await call("", { name: "shop", preset: "node-web" });
    const made = await call("/" + id + "/deployments", {});
    for (let turn = 0; turn < 600; turn += 1) {
      const { status } = await call("/" + id + "/deployments/" + made.id);
      if (["active", "failed"].includes(status)) return console.log(status);
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  })()'`;
