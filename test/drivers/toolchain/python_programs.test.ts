/** @tier heavy @quarter 3 @covers drivers/toolchain */
// Poetry and PDM: from the index of packages, by the hashes of all their packages.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { driverContext } from '../../../core/driver';
import type { Tool } from '../../../drivers/toolchain';
import { programVersion } from '../../../drivers/toolchain/python_programs';
import { PUBLIC_PYTHON } from '../../../drivers/toolchain/python_source';
import { openToolchains } from '../../../drivers/toolchain/store';
import { pinnedUvWheel, startPythonIndex } from '../../support/builds/python_index';

const release = pinnedUvWheel();
const page = JSON.stringify(`${PUBLIC_PYTHON.index}/installer/`);
// As the driver reads it: with the authorities of Node.js.
const read = `fetch(${page}, { signal: AbortSignal.timeout(10_000) }).then(({ ok }) => process.exit(ok ? 0 : 1))`;
const isInReach = release !== null && spawnSync(process.execPath, ['-e', read]).status === 0;
const withIndex = isInReach ? test : test.skip;
const folder = mkdtempSync(path.join(os.tmpdir(), 'programs-'));
const ctx = () => driverContext(180_000);
const tool = (name: 'poetry' | 'pdm'): Tool => ({ name, version: programVersion(name), package: name });

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(['poetry', 'pdm'] as const)('%s: each of its packages has an exact version and hashes', (name) => {
  const list = path.join(__dirname, `../../../drivers/toolchain/python_programs/${name}.requirements`);
  const blocks = readFileSync(list, 'utf8')
    .trim()
    .split(/\n(?=\S)/);
  expect(blocks.length).toBeGreaterThan(30);
  for (const block of blocks)
    expect(block).toMatch(/^[a-z][\w.-]*==[^\s;]+( ; .*)? \\\n {4}--hash=sha256:[0-9a-f]{64}/);
});

(release === null ? test.skip : test)(
  'that cannot be had leave nothing behind, and the reason names them',
  async () => {
    const index = await startPythonIndex();
    try {
      index.files.set(release!.name, release!.body);
      const store = await openToolchains(path.join(folder, 'empty'), undefined, {
        ...PUBLIC_PYTHON,
        index: `${index.url}/simple`,
      });
      await expect(store.ensure([tool('poetry')], ctx())).rejects.toMatchObject({
        message: `The Python package index did not send poetry ${programVersion('poetry')} with its packages.`,
      });
      expect(readdirSync(path.join(folder, 'empty'))).toEqual([`uv-${PUBLIC_PYTHON.uv.version}`]);
    } finally {
      await index.close();
    }
  },
);

withIndex(
  `are installed, run, and hide no Python of the source${isInReach ? '' : ' (needs a Python package index)'}`,
  async () => {
    const store = await openToolchains(path.join(folder, 'public'), undefined, PUBLIC_PYTHON);
    for (const name of ['poetry', 'pdm'] as const) {
      await store.ensure([tool(name)], ctx());
      const bin = store.binDirectory(tool(name));
      expect(readdirSync(bin)).toEqual([name]);
      const options = { encoding: 'utf8', env: { PATH: '/usr/bin:/bin', HOME: folder } } as const;
      expect(execFileSync(path.join(bin, name), ['--version'], options)).toContain(programVersion(name));
    }
  },
  240_000,
);
