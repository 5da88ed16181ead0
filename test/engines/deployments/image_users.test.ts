/** @tier heavy @quarter 1 @covers drivers/image drivers/runtime jobs/applications/instance */
// Images whose files and programs have several users: who owns what, who may do what, and whose the files of volumes
// are, also after an update, another image or another application.
import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { debianLayer, debianObstacle } from '../../support/builds/debian_image';
import {
  base,
  describeImages,
  imageApplication,
  imageName,
  registry,
  service,
  setUpImages,
  type ImageApplication,
} from '../../support/builds/image_cases';
import { pushImage, tarOf } from '../../support/builds/images';
import { webCommand } from '../../support/git/repositories';
import { attachVolume, tenantUser, usersLayer, volumeOf } from '../../support/builds/user_images';
import { waitFor } from '../../support/wait_for';

const isRoot = process.getuid?.() === 0;
const testAsRoot = isRoot ? test : test.skip;
const obstacle = debianObstacle();
const WITHIN_MS = 120_000;
const RANGES = '/var/lib/platform-api/user-id-ranges';

let layers: Buffer[];

/** @param config of the image; a text is the command of a shell */
async function applicationOf(tag: string, config: Record<string, unknown> | string): Promise<ImageApplication> {
  const given = typeof config === 'string' ? { Cmd: ['/bin/bash', '-c', config] } : config;
  await pushImage(registry, 'acme/users', tag, { layers, config: given, gzip: true });
  return imageApplication(imageName(`users:${tag}`));
}

async function deploy(application: Pick<ImageApplication, 'deploy'>): Promise<void> {
  const { status, status_reason } = await application.deploy();
  expect([status, status_reason]).toEqual(['active', null]);
}

const SERVE_DATA =
  'mkdir -p /data/more && id -u >> /data/starts && echo x > /data/more/$$ && ' +
  'exec /bin/busybox httpd -f -p $PORT -h /data';

(obstacle === null ? describeImages : describe.skip)('images with several users', () => {
  setUpImages();
  beforeAll(async () => {
    layers = [base, await debianLayer(), await usersLayer()];
  }, 60_000);

  test(
    'an image that starts as root gives files to its user and becomes this user',
    async () => {
      const application = await applicationOf('entrypoint', { Entrypoint: ['/entrypoint'] });
      await volumeOf(application, 'entrypoint');
      await deploy(application);
      await deploy(application);
      const { body } = await application.visit();
      if (isRoot)
        expect(body.trim().split('\n')).toEqual([
          'uid=1000(app) gid=1000(app) groups=1000(app),44(extra)',
          'app:app 700 /home/app',
          'root:shadow 640 /etc/shadow',
          'app:app 700 /srv/private',
          // As a number: the image has no user 7.
          'UNKNOWN:extra 2775 /srv/shared',
          'root:root 1777 /tmp',
          'app:app 755 /data',
          'private',
        ]);
      else expect(body).toMatch(/^uid=1000\(app\).*\n(.*\n)*private\n$/);
      expect((await application.visit('/starts')).body).toBe('1000\n1000\n');
    },
    WITHIN_MS,
  );

  test(
    'an image has what its build put into /tmp, and a machine as in containers',
    async () => {
      const left = await tarOf([
        { name: 'tmp/', type: 'directory', mode: 0o755 },
        ...['tmp/left', 'run/left', 'var/tmp/left'].map((name) => ({ name, mode: 0o644, content: 'left' })),
      ]);
      const command = `mkdir /tmp/www; cat /tmp/left /run/left /var/tmp/left > /tmp/www/index.html; cd /tmp/www
        echo > own; for one in a b; do echo $one > /dev/stdout; echo $one; done
        /bin/busybox grep -w "$(cat /proc/sys/kernel/hostname)" /etc/hosts > name
        cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes > limit 2>/dev/null
        cd . && /bin/busybox httpd -f -p $PORT -h /tmp/www`;
      const config = { Cmd: ['/bin/bash', '-c', command], User: 'app' };
      await pushImage(registry, 'acme/users', 'left', { layers: [...layers, left], config, gzip: true });
      const application = await imageApplication(imageName('users:left'));
      await deploy(application);
      expect((await application.visit()).body).toBe('leftleftleft');
      expect((await application.visit('/name')).body).toContain('app');
      expect((await application.visit('/limit')).body).toMatch(/^(\d{8,10}\n)?$/);
      const linesOf = async () => (await application.get('/logs?limit=50&order=asc')).data;
      await waitFor('its lines', async () => /"a".*"a".*"b".*"b"/.test(JSON.stringify(await linesOf())));
    },
    WITHIN_MS,
  );

  test(
    'a program that gives files away and changes its user goes on, with one user id or with many',
    async () => {
      const command = `mkdir /www; chown -R app:app /www /srv && exec setpriv --reuid app --regid app --clear-groups \
        bash -c 'id -u > /www/index.html; exec /bin/busybox httpd -f -p $PORT -h /www'`;
      const application = await applicationOf('drops', command);
      await deploy(application);
      expect((await application.visit()).body).toBe('1000\n');
    },
    WITHIN_MS,
  );

  testAsRoot(
    'the user of USER has its groups, its own files, and no way to others',
    async () => {
      const command = `{ id; cat /srv/private/text; cat /etc/shadow; touch /srv/shared/new && ls -ln /srv/shared/new
        touch /data/mine && stat -c %U /data/mine; chown root /data/mine; setpriv --reuid 0 true; /bin/setuid -u
        cat /proc/self/status; } > /tmp/out 2>&1; mkdir /tmp/www; cp /tmp/out /tmp/www/index.html
        exec /bin/busybox httpd -f -p $PORT -h /tmp/www`;
      const application = await applicationOf('named', { Cmd: ['/bin/bash', '-c', command], User: 'app' });
      await volumeOf(application, 'named');
      await deploy(application);
      const { body } = await application.visit();
      expect(body).toMatch(/^uid=1000\(app\) gid=1000\(app\) groups=1000\(app\),44\(extra\)\nprivate\n/);
      expect(body).toMatch(/shadow: Permission denied\n-rw.* 1 1000 44 .*\napp\n/);
      expect(body).toMatch(/changing ownership.*not permitted\n.*setresuid failed.*\n1000\n/);
      expect(body).toMatch(/CapPrm:\s0{16}\nCapEff:\s0{16}\nCapBnd:\s0{16}\n/);
    },
    WITHIN_MS,
  );

  testAsRoot(
    'root of an image is root of nothing else',
    async () => {
      const secret = path.join(service.runtimeDir, 'secret-of-the-host');
      writeFileSync(secret, 'host', { mode: 0o644 });
      const command = `exec 2>&1; mkdir /www; {
        while read -r name value; do case $name in CapPrm:|CapBnd:|NoNewPrivs:) echo "$name $value";; esac
        done < /proc/self/status
        cat /proc/self/uid_map
        try() { "$@" > /tmp/said 2>&1 && echo "YES $*" || echo "no $*"; }
        try mknod /null c 1 3; try mount -t tmpfs none /data; try mount -t proc proc /proc
        try sh -c 'echo 0 0 1 > /proc/self/uid_map'; try cat ${secret}; try cat /proc/1/root${secret}
        try chown 65536 /entrypoint; try sh -c 'echo 1 > /proc/sys/kernel/panic'
        try busybox nsenter -t 1 -m true; try busybox unshare -U true; try busybox unshare -m true
        try busybox chroot /proc/1/root ls ${service.runtimeDir}
        try chown 5 /tmp/said; try setpriv --reuid 5 --regid 5 --clear-groups id
      } > /www/index.html; exec /bin/busybox httpd -f -p $PORT -h /www`;
      const application = await applicationOf('hostile', command);
      await deploy(application);
      const lines = (await application.visit()).body.trim().split('\n');
      // CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, SYS_CHROOT, SETFCAP
      expect(lines.slice(0, 3).map((line) => line.split(/\s+/)[1])).toEqual([
        '00000000800405fb',
        '00000000800405fb',
        '1',
      ]);
      const maps = lines.slice(3, 5).map((line) => line.trim().split(/\s+/).map(Number));
      expect(maps).toEqual([
        [0, expect.any(Number), 1],
        [1, expect.any(Number), 65_535],
      ]);
      expect(maps[0]?.[1]).toBeGreaterThan(0);
      const tries = lines.slice(5);
      expect(tries.filter((line) => line.startsWith('YES'))).toEqual([
        'YES chown 5 /tmp/said',
        'YES setpriv --reuid 5 --regid 5 --clear-groups id',
      ]);
      expect(tries).toHaveLength(14);
      const find = 'find "$0" -perm /6000 -type f 2>/dev/null || :';
      expect(execFileSync('sh', ['-c', find, service.runtimeDir]).toString()).toBe('');
    },
    WITHIN_MS,
  );

  testAsRoot(
    'applications have ranges of their own, which are free when the applications are gone',
    async () => {
      const serve = 'mkdir /www; cat /proc/self/uid_map > /www/index.html; exec busybox httpd -f -p $PORT -h /www';
      const [one, other] = [await applicationOf('one', serve), await applicationOf('other', serve)];
      await Promise.all([deploy(one), deploy(other)]);
      const firstOf = async (application: ImageApplication): Promise<string> =>
        (await application.visit()).body.trim().split(/\s+/)[4] ?? '';
      const firsts = [await firstOf(one), await firstOf(other)];
      expect(new Set(firsts).size).toBe(2);
      for (const first of firsts) expect(existsSync(path.join(RANGES, first))).toBe(true);
      const again = await one.deploy();
      expect([again.status, await firstOf(one)]).toEqual(['active', firsts[0]]);
      await service.call('DELETE', `/v2/applications/${one.id}`);
      const left = (): string[] =>
        ['units', 'releases', 'caches'].flatMap((folder) => {
          const find = 'find "$0" -printf "%U %p\\n" 2>/dev/null || :';
          const all = execFileSync('sh', ['-c', find, path.join(service.runtimeDir, folder)]).toString();
          return all.split('\n').filter((line) => {
            const uid = Number(line.split(' ')[0]);
            return uid >= Number(firsts[0]) && uid < Number(firsts[0]) + 65_535;
          });
        });
      await waitFor('no files', () => Promise.resolve(left().length === 0));
      await waitFor('no directory', () =>
        Promise.resolve(!existsSync(path.join(service.runtimeDir, 'caches', one.id))),
      );
    },
    WITHIN_MS,
  );

  testAsRoot(
    'files of a volume of an earlier version belong to the user of the image, and of a new one too',
    async () => {
      const config = { Cmd: ['/bin/bash', '-c', SERVE_DATA], User: '1000:1000' };
      const application = await applicationOf('update', config);
      const volume = await volumeOf(application, 'update');
      await deploy(application);
      expect(lstatSync(volume.files()).uid).toBe(lstatSync(path.join(volume.files(), 'starts')).uid);
      // As earlier versions left them: all files are of the user of the tenant, and nobody has noted whose they are.
      const uid = tenantUser(application.id);
      execFileSync('chown', ['-R', `${uid}:${uid}`, volume.files()]);
      rmSync(path.join(path.dirname(volume.files()), '.owners'));
      await deploy(application);
      expect((await application.visit('/starts')).body).toBe('1000\n1000\n');
    },
    WITHIN_MS,
  );

  testAsRoot(
    'a volume goes to another application with its users, and to one without an image',
    async () => {
      const one = await applicationOf('mover', { Entrypoint: ['/entrypoint'] });
      const volume = await volumeOf(one, 'moved');
      await deploy(one);
      const other = await applicationOf('mover2', {
        Cmd: ['/bin/bash', '-c', `stat -c %U /data/starts > /data/index.html; ${SERVE_DATA}`],
        User: 'app',
      });
      await attachVolume(volume.id, null);
      await attachVolume(volume.id, other);
      await deploy(other);
      expect((await other.visit()).body).toBe('app\n');
      expect((await other.visit('/starts')).body).toBe('1000\n1000\n');
      const built = await service.application(
        webCommand('node a.js', {
          'a.js': `const fs = require('fs'); fs.appendFileSync('/data/starts', 'built\\n');
            require('http').createServer((q, a) => a.end(fs.readFileSync('/data/starts'))).listen(process.env.PORT)`,
        }),
      );
      await attachVolume(volume.id, null);
      await attachVolume(volume.id, built);
      await deploy(built);
      expect((await built.visit()).body).toBe('1000\n1000\nbuilt\n');
    },
    WITHIN_MS,
  );

  testAsRoot(
    'a version of before there were ranges starts again as it was, and the next deployment has users',
    async () => {
      const serve = 'mkdir -p /www; id -u > /www/index.html; exec busybox httpd -f -p $PORT -h /www';
      const application = await applicationOf('earlier', serve);
      await deploy(application);
      expect((await application.visit()).body).toBe('0\n');
      const artifacts = path.join(service.runtimeDir, 'releases');
      const store = path.join(service.runtimeDir, 'caches', application.id, 'application.layers');
      const uid = tenantUser(application.id);
      for (const name of readdirSync(artifacts)) {
        const of = await service.sql('select 1 from deployments where id = $1 and application_id = $2', [
          name,
          application.id,
        ]);
        if (of.length) execFileSync('chown', ['-Rh', `${uid}:${uid}`, path.join(artifacts, name)]);
      }
      for (const name of readdirSync(store)) {
        const file = path.join(store, name, 'layer.json');
        const { range: _range, owners: _owners, ...record } = JSON.parse(readFileSync(file, 'utf8'));
        writeFileSync(file, JSON.stringify(record));
      }
      const user = '{"name":"app","uid":1000,"gid":1000,"home":"/root"}';
      await service.sql(
        `update deployments set plan = jsonb_set(plan #- '{image,settings,first_user_id}', '{image,settings,user}',
          $2::jsonb) where application_id = $1`,
        [application.id, user],
      );
      await service.sql(
        `update releases set settings = jsonb_set(settings #- '{image,first_user_id}', '{image,user}', $2::jsonb)
          where application_id = $1`,
        [application.id, user],
      );
      await application.post('/restart');
      await waitFor('the earlier user', async () => (await application.visit()).body === '1000\n');
      await deploy(application);
      expect((await application.visit()).body).toBe('0\n');
    },
    WITHIN_MS,
  );
});
