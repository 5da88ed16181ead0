/** @tier heavy @quarter 3 @covers server/upgrade/prepare_steps.ts server/upgrade/change_steps.ts */
// What is no release, or no good one: one sentence, and the release before serves on.
import { copyFileSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { version } from '../../package.json';
import { canInstall, installRelease, installing, startingWith, type Installed } from '../support/processes/installed';
import { ROOT } from '../support/runner/repository';

jest.setTimeout(900_000);
const asRoot = installing();
const NEXT = '1.0.1';

let machine: Installed;
let good: string;
beforeAll(async () => {
  if (!canInstall) return;
  machine = await installRelease();
  good = await machine.archive(NEXT);
});
afterAll(() => machine?.close());

/** A changed copy with the checksums of the original, or with its own. */
async function changed(name: string, change: (file: string) => void, sums: 'old' | 'own'): Promise<string> {
  const folder = path.join(machine.directory, `changed-${name.replace(/\W+/g, '-')}`);
  mkdirSync(folder);
  const file = path.join(folder, path.basename(good));
  copyFileSync(good, file);
  copyFileSync(path.join(path.dirname(good), 'SHA256SUMS'), path.join(folder, 'SHA256SUMS'));
  change(file);
  if (sums === 'own') await machine.run(`cd ${folder} && sha256sum *.tar.gz >SHA256SUMS`);
  return file;
}

async function refused(file: string, env: Record<string, string> = {}): Promise<string> {
  const { code, err } = await machine.run(`platform upgrade ${file}`, env);
  expect([code, await machine.current()]).toEqual([1, version]);
  await machine.waitUntilServed(version);
  expect((await machine.run('ls /opt/platform')).out).not.toContain('1.0.1');
  expect((await machine.run('ls -A /opt/platform/.upgrade')).out).not.toMatch(/state|archive|unpacking/);
  return err.trim().split('\n').at(-1) as string;
}

const flip = (at: number) => (file: string) => {
  const bytes = readFileSync(file);
  const index = Math.floor(bytes.length * at);
  bytes[index] = (bytes[index] as number) ^ 1;
  writeFileSync(file, bytes);
};

asRoot.each([0.0, 0.7])('one changed bit at %d of the archive', async (at) => {
  const file = await changed(`bit ${at}`, flip(at), 'old');
  expect(await refused(file)).toMatch(
    /was not made, and .* serves as before: .* is not what SHA256SUMS says: download/,
  );
});

asRoot('cut short, no archive, no checksums, no file', async () => {
  const cut = await changed('cut', (file) => truncateSync(file, 1_000_000), 'own');
  expect(await refused(cut)).toMatch(/The archive cannot be read \(unexpected end of file\): download it again\.$/);
  const text = await changed('text', (file) => writeFileSync(file, 'no archive'.repeat(1_000)), 'own');
  expect(await refused(text)).toMatch(/The archive cannot be read \(incorrect header check\): download it again\.$/);
  const alone = path.join(machine.directory, 'alone.tar.gz');
  copyFileSync(good, alone);
  expect(await refused(alone)).toMatch(/There is no SHA256SUMS beside |has no line for alone\.tar\.gz/);
  expect(await refused('/nowhere.tar.gz')).toMatch(
    /\/nowhere\.tar\.gz is not a file, and \/nowhere\.tar\.gz is no version/,
  );
  expect(await refused('')).toMatch(/RELEASES_URL is not set in \/etc\/platform\/platform\.env: set it to where/);
});

asRoot.each([
  [
    'a link out of it',
    NEXT,
    'ln -s /etc/passwd app/out',
    /app\/out leads out of it\): download one from where releases are\.$/,
  ],
  [
    'a link above it',
    NEXT,
    'ln -s ../../../etc app/out',
    /app\/out leads out of it\): download one from where releases are\.$/,
  ],
  ['a device', NEXT, 'mknod app/null c 1 3', /\(.*app\/null is a character-device\): download one/],
  [
    'no version',
    NEXT,
    'rm VERSION',
    /The archive is no release of the platform \(its name, .* do not fit\): download one/,
  ],
  [
    'another version inside',
    NEXT,
    'echo 9.9.9 >VERSION',
    /The archive is no release of the platform \(its name, .* do not fit\): download one/,
  ],
  ['the same version', version, '', /1\.0\.0 runs already\.$/],
  ['an older one', '0.9.0', '', /0\.9\.0 is older than 1\.0\.0, which runs: `platform rollback` goes back\.$/],
  [
    'one that skips too far',
    NEXT,
    `sed -i '0,/"version"/s//"upgradesFrom": "1.0.1",\\n"version"/' app/package.json`,
    /1\.0\.1 upgrades from 1\.0\.1 or newer, and 1\.0\.0 runs: upgrade to that first\.$/,
  ],
  [
    'one that takes away what this one needs',
    NEXT,
    'echo >app/dist/migrations/9999_contract_9998_x.js',
    /There would be no way back from 1\.0\.1 to 1\.0\.0 \(9999_contract_9998_x\): upgrade to a version between/,
  ],
  ['Node.js that does not run', NEXT, 'printf "#!/nowhere\\n" >bin/node', /Node\.js of 1\.0\.1 does not run here: /],
  [
    'a program that cannot be loaded',
    NEXT,
    'rm app/dist/server/start_worker.js',
    /1\.0\.1 cannot be loaded: Cannot find module '\.\/start_worker'\.$/,
  ],
  [
    'a doctor that finds fault',
    NEXT,
    `sed -i 's/^const checks = {/&fault: () => ({ check: "fault", status: "failed", detail: "no good" }),/' ` +
      'app/dist/server/operator/doctor.js',
    /Doctor of 1\.0\.1: fault: no good\.$/,
  ],
])('%s', async (_, made, edit, sentence) => {
  expect(await refused(await machine.archive(made, edit))).toMatch(sentence);
});

asRoot('another architecture, and a name of another release', async () => {
  const other = process.arch === 'x64' ? 'arm64' : 'x64';
  const archive = await machine.archive(NEXT, '', `platform-${NEXT}-linux-${other}`);
  expect(await refused(archive)).toMatch(`This release is for ${other}: download that for ${process.arch}, which`);
  expect(await refused(await machine.archive(NEXT, '', 'other'))).toMatch('is no release of the platform');
});

const MIGRATION = 'async (k) => { await k.raw("create table half (a text)"); throw new Error("no migration") }';
/** @param times how often as fast the clock goes while the new release is watched (90 seconds) */
asRoot.each<[string, string, RegExp, number?]>([
  [
    'a start that fails',
    startingWith('console.error("platform-api: no start"); process.exit(1);'),
    /1\.0\.1 ends again and again: no start\.$/m,
  ],
  [
    'a migration that fails',
    `echo 'exports.up = ${MIGRATION}' >app/dist/migrations/9999_fails.js`,
    /1\.0\.1 ends again and again/,
  ],
  [
    'a start that becomes ready, and ends then',
    startingWith('setTimeout(() => process.exit(1), 5000);'),
    /1\.0\.1 (?:was ready, and ended|ends again and again|is not ready)/,
  ],
  [
    'a start that never becomes ready',
    startingWith('setInterval(() => {}, 1000); return;'),
    /1\.0\.1 is not ready after 90 seconds: `journalctl -u platform` says more\.$/m,
    10,
  ],
  [
    'a release that has lost its object storage',
    `sed -i 's/if (config.s3Port === 0 ||/if (true ||/' app/dist/server/agents/object_storage/object_storage.js`,
    /Object storage does not answer any more after 90 seconds: /,
    3,
  ],
])('goes back by itself from %s', async (_, edit, sentence, times = 1) => {
  const env = {
    NODE_OPTIONS: `--require ${ROOT}/test/support/processes/fast_watch.js`,
    WATCH_TIMES: String(times),
  };
  const { code, err } = await machine.run(`platform upgrade ${await machine.archive(NEXT, edit)}`, env);
  expect(err).toMatch(sentence);
  expect([code, await machine.current(), await machine.served()]).toEqual([1, version, version]);
  expect((await machine.run('platform doctor')).out).toMatch(/^migrations +ok/m);
});

asRoot('a disk that is full before it unpacks, while it does, or at the backup', async () => {
  const small = (place: string, megabytes: number): string => `mount -t tmpfs -o size=${megabytes}m tmpfs ${place}`;
  await machine.run(`mkdir -p /opt/platform/.upgrade && ${small('/opt/platform/.upgrade', 8)}`);
  expect(await refused(good)).toMatch(
    /\/opt\/platform\/\.upgrade has 8 MB free, and the upgrade needs \d+ MB: make room/,
  );
  await machine.run('umount /opt/platform/.upgrade');
  // Somebody else has taken meanwhile what was free when it was counted: here what is unpacked goes to another disk.
  await machine.run(small('/opt/platform/.upgrade', 100));
  const large = await machine.archive(NEXT, 'head -c 100M /dev/zero >app/large');
  expect(await refused(large)).toMatch(
    /The release could not be unpacked: .*(?:No space left on device|Wrote only \d+ of \d+ bytes): make room first\.$/,
  );
  await machine.run('umount /opt/platform/.upgrade');
  await machine.run(`mkdir -p /var/lib/platform-api/upgrades && ${small('/var/lib/platform-api/upgrades', 4)}`);
  expect(await refused(good)).toMatch(/ENOSPC: no space left on device, .*: make room first\.$/);
  await machine.run('umount /var/lib/platform-api/upgrades');
});

asRoot('two at once, and without rights', async () => {
  const first = machine.run(`platform upgrade ${good}`);
  while (!(await machine.journal('state'))) await new Promise((resolve) => setTimeout(resolve, 100));
  const second = await machine.run(`platform upgrade ${good}`);
  expect(second.err).toContain('an upgrade or rollback is under way: `platform upgrade --status` shows it');
  expect((await first).code).toBe(0);
  const other = await machine.run('setpriv --reuid=65534 --clear-groups platform rollback');
  expect(other.err).toContain('run it as root: it replaces programs and restarts the service');
  expect((await machine.run('platform rollback')).code).toBe(0);
});
