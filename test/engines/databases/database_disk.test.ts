/** @tier heavy @quarter 3 @covers drivers/hosted_server drivers/volume */
// The storage of a server whose data are on a disk of their own: its end is hard, and the server comes back from it.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statfsSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { DatabaseServer, RestoreFrom } from '../../../drivers/database';
import { diskBytes } from '../../../drivers/database/disk_size';
import { mountsUnder } from '../../../drivers/volume/mounts';
import { ctx } from '../../support/databases/database_server';
import { postgresqlServers } from '../../support/databases/hosted_servers';
import { linesOf } from '../../support/builds/runtime';
import {
  asUser,
  openEngineTrial,
  postgresqlSpec,
  refusal,
  rows,
  untilDone,
  wholePostgresql,
  type EngineTrial,
} from '../../support/engines';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

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
    can = one.trial.disks && version !== undefined;
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

  test('its log is on it', async () => {
    if (!can) return;
    const logs = readdirSync(path.join(home(), 'disk/log'));
    expect(logs.length).toBeGreaterThan(0);
    expect(existsSync(path.join(home(), 'log'))).toBe(false);
    await refusal(spec, {}, 'select no_such_column');
    expect(await linesOf(one!.driver, spec.id)).toContainEqual(expect.stringContaining('no_such_column'));
  });

  test('a restore leaves one disk, as large as the package asks for', async () => {
    if (!can) return;
    // A disk does not shrink by itself.
    await untilDone((context) => one!.driver.ensure({ ...spec, storage_gb: 66 }, context));
    await untilDone((context) => one!.driver.ensure(spec, context));
    const size = diskBytes({ ...engineOf(one!), gigabyteBytes }, spec);
    expect(statSync(image()).size).toBeGreaterThan(size);
    await untilDone((context) => one!.driver.backup(spec, 'bkp_one', context));
    await rows(spec, 'insert into kept values (44)');
    await untilDone((context) => one!.driver.restore(spec, restoreOf(spec, 'rst_one'), context));
    expect(await rows(spec, 'select answer from kept order by 1')).toEqual([{ answer: 42 }, { answer: 43 }]);
    expect(statSync(image()).size).toBe(size);
    expect(await mountsBelow(home())).toEqual([path.join(home(), 'disk')]);
    expect(readdirSync(home()).filter((name) => /^(next|data|disk\.before)/.test(name))).toEqual([]);
    expect(readdirSync(path.join(home(), 'disk/log')).length).toBeGreaterThan(0);
  });

  test('a server from before the disks gets one by a restore', async () => {
    if (!can) return;
    const older = postgresqlSpec(version!, one!.firstPort + 2);
    const plain = postgresqlServers({
      ...{ runtime: one!.trial.runtime, directory: one!.directory, found: one!.found, gigabyteBytes, disks: false },
      store: null,
    });
    const at = path.join(one!.directory, older.id);
    await untilDone((context) => plain.ensure(older, context));
    await rows(older, 'create table kept as select 7 as answer');
    await untilDone((context) => plain.backup(older, 'bkp_one', context));
    expect(existsSync(path.join(at, 'disk.ext4'))).toBe(false);
    await untilDone((context) => one!.driver.restore(older, restoreOf(older, 'rst_one'), context));
    expect(await rows(older, 'select answer from kept')).toEqual([{ answer: 7 }]);
    expect(await mountsBelow(at)).toEqual([path.join(at, 'disk')]);
    expect(existsSync(path.join(at, 'data'))).toBe(false);
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

const restoreOf = ({ id }: DatabaseServer, restore: string): RestoreFrom => ({
  ...{ id: restore, server_id: id, backup_id: 'bkp_one', until: null },
});

const mountsBelow = async (home: string): Promise<string[]> => (await mountsUnder(home)).map(({ point }) => point);

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
