/** @user any */
// The embedded cache of CDN zones by the rules of all engines.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openEmbeddedCdn } from '../../engines/cdn/cache/driver';
import { describeCdnCache } from '../conformance/cdn_cache';
import { testEdgeOptions } from '../support/cdn/cdn_bench';

const directory = mkdtempSync(path.join(tmpdir(), 'cdn-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describeCdnCache('embedded', () =>
  openEmbeddedCdn({
    ...testEdgeOptions(),
    directory,
    bytesMax: 100_000_000,
    objectsMax: 10_000,
    memoryBytesMax: 10_000_000,
    objectBytesMax: 10_000_000,
  }),
);
