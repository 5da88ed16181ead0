/** @tier heavy @quarter 1 @covers rest/openapi */
// The OpenAPI document before checkers of others, and the clients that generators make of it.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buildCore } from '../../../resolvers';
import { openapiDocument } from '../../../rest/openapi';

const checker = path.resolve(__dirname, '../../../tools/development/check-openapi.mjs');

test(
  'linters find no error and no warning, generated clients compile',
  async () => {
    const { table, schema, transitional } = buildCore();
    const described = { table, schema, transitional, baseUrl: 'http://127.0.0.1:8080', version: '0.1.0' };
    const folder = mkdtempSync(path.join(tmpdir(), 'openapi-'));
    try {
      const file = path.join(folder, 'openapi.yaml');
      writeFileSync(file, JSON.stringify(openapiDocument(described)));
      const output = await new Promise<string>((done) =>
        execFile(process.execPath, [checker, file], (_, stdout, stderr) => done(stdout + stderr)),
      );
      expect(output.split('\n').filter((line) => line.startsWith('ok'))).toHaveLength(4);
      expect(output).not.toContain('FAILED');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
  300_000,
);
