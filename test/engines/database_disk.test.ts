// The storage of a server whose data are on a disk of their own: its end is hard, and the server comes back from it.
import { spawnSync } from 'node:child_process';
import { existsSync, statfsSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { DatabaseServer } from '../../drivers/database';
import { diskBytes } from '../../drivers/database/disk_size';
import { tryMount } from '../../drivers/volume/trial';
import { ctx } from '../support/database_server';
import {
  asUser,
  openEngineTrial,
  postgresqlSpec,
  rows,
  untilDone,
  wholePostgresql,
  type EngineTrial,
} from '../support/engines';

jest.setTimeout(240_000);

const gigabyteBytes = 2 ** 25;

describe('the disk of a PostgreSQL server', () => {
  let one: EngineTrial | undefined;
  let version: string | undefined;
  let spec: DatabaseServer;
  let other: DatabaseServer;
  let can = false;
  beforeAll(async () => {
    version = (await wholePostgresql())?.series;
    one = await openEngineTrial({ gigabyteBytes });
    can =
      process.getuid?.() === 0 &&
      version !== undefined &&
      (await tryMount(one.directory, ctx()).then(
        () => true,
        () => false,
      ));
    if (!can) return;
    spec = postgresqlSpec(version!, one.firstPort);
    other = postgresqlSpec(version!, one.firstPort + 1);
    for (const server of [spec, other]) await untilDone((context) => one!.driver.ensure(server, context));
  });
  afterAll(async () => {
    await one?.close();
  });

  const home = () => path.join(one!.directory, spec.id);
  const image = () => path.join(home(), 'disk.ext4');
  const mounts = () => spawnSync('findmnt', ['-n', '-o', 'TARGET'], { encoding: 'utf8' }).stdout;

  test('filled as fast as it goes, it ends where its disk ends, and comes back', async () => {
    if (!can) return console.warn('skipped: images cannot be mounted here, or no PostgreSQL');
    const size = diskBytes({ ...engineOf(one!), gigabyteBytes }, spec);
    expect(statSync(image()).size).toBe(size);
    await rows(other, 'create table kept as select 1 as one');
    await rows(spec, 'create table kept as select 42 as answer');
    await rows(spec, 'create unlogged table flood (filler text)');
    const error = await flood(spec);
    expect(error).toMatch(/No space left on device|Connection terminated|recovery/);
    expect(statSync(image()).blocks * 512).toBeLessThanOrEqual(size + (1 << 20));
    expect(await rows(other, 'select one from kept')).toEqual([{ one: 1 }]);
    await untilDone((context) => one!.driver.ensure(spec, context));
    expect(await rows(spec, 'select answer from kept')).toEqual([{ answer: 42 }]);
    expect(await one!.driver.observe(spec, ctx())).toMatchObject({ state: 'running', full: true });
  });

  test('more storage makes room, and what is deleted is free again', async () => {
    if (!can) return;
    spec = { ...spec, storage_gb: 32 };
    await untilDone((context) => one!.driver.ensure(spec, context));
    expect(statSync(image()).size).toBe(diskBytes({ ...engineOf(one!), gigabyteBytes }, spec));
    await rows(spec, 'truncate flood');
    await untilDone((context) => one!.driver.ensure(spec, context));
    await rows(spec, 'insert into kept values (43)');
    expect(await one!.driver.observe(spec, ctx())).toMatchObject({ state: 'running', full: false });
  });

  test('a growth that was interrupted is completed', async () => {
    if (!can) return;
    spec = { ...spec, storage_gb: 33 };
    const size = diskBytes({ ...engineOf(one!), gigabyteBytes }, spec);
    const { blocks } = statfsSync(path.join(home(), 'disk'));
    // Killed between the image and its file system.
    writeFileSync(path.join(home(), '.disk.growing'), '');
    truncateSync(image(), size);
    await untilDone((context) => one!.driver.ensure(spec, context));
    expect(statfsSync(path.join(home(), 'disk')).blocks).toBeGreaterThan(blocks);
    expect(existsSync(path.join(home(), '.disk.growing'))).toBe(false);
    expect(await rows(spec, 'select answer from kept order by 1')).toEqual([{ answer: 42 }, { answer: 43 }]);
  });

  test('after a start of the host the disk is mounted before the server runs', async () => {
    if (!can) return;
    await untilDone((context) => one!.driver.ensure({ ...spec, running: false }, context));
    expect(spawnSync('umount', [path.join(home(), 'disk')]).status).toBe(0);
    expect(existsSync(path.join(home(), 'disk/data'))).toBe(false);
    await untilDone((context) => one!.driver.ensure(spec, context));
    expect(await rows(spec, 'select answer from kept order by 1')).toEqual([{ answer: 42 }, { answer: 43 }]);
  });

  test('a disk that cannot be mounted keeps the server from being made anew', async () => {
    if (!can) return;
    await untilDone((context) => one!.driver.ensure({ ...spec, running: false }, context));
    expect(spawnSync('umount', [path.join(home(), 'disk')]).status).toBe(0);
    spawnSync('mv', [image(), `${image()}.away`]);
    spawnSync('truncate', ['-s', '1M', image()]);
    await expect(one!.driver.ensure(spec, ctx())).rejects.toThrow();
    expect(existsSync(path.join(home(), 'disk/data'))).toBe(false);
    spawnSync('mv', [`${image()}.away`, image()]);
    await untilDone((context) => one!.driver.ensure(spec, context));
    expect(await rows(spec, 'select answer from kept order by 1')).toEqual([{ answer: 42 }, { answer: 43 }]);
  });

  test('a removed server leaves no mount and no loop device', async () => {
    if (!can) return;
    const at = image();
    await one!.driver.remove(spec.id, ctx());
    expect(existsSync(home())).toBe(false);
    expect(mounts()).not.toContain(home());
    expect(spawnSync('losetup', ['-l', '-n', '-O', 'BACK-FILE'], { encoding: 'utf8' }).stdout).not.toContain(at);
    expect(await rows(other, 'select one from kept')).toEqual([{ one: 1 }]);
  });
});

function engineOf(one: EngineTrial) {
  return { name: 'postgresql', directory: one.directory, runtime: one.trial.runtime };
}

async function flood(spec: DatabaseServer): Promise<string> {
  try {
    for (;;)
      await asUser(spec, {}, (client) =>
        client.query(`set default_transaction_read_only = off;
          insert into flood select repeat(md5(i::text), 60) from generate_series(1, 20000) i`),
      );
  } catch (error) {
    return (error as Error).message;
  }
}
