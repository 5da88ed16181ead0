/** @tier heavy @quarter 3 @covers drivers/object_storage/embedded db/bucket_functions models/bucket_object */
// ceph/s3-tests against the embedded endpoint: what is offered passes, but for tests that the table names.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startS3, type S3Service } from '../support/s3';
import { openSuiteEndpoint, runSuite, SUITE_MARKS, type SuiteEndpoint } from '../support/s3_suite';
import { describeSuite, judge, knownFailures } from '../support/suites';

const TABLE = 'test/suites/s3_tests.tsv';
const RUN_MS = 3_600_000;
const PROCESSES = 3;
describeSuite('s3-tests', ['venv/bin/python'], (place) => {
  let world: S3Service;
  let endpoints: SuiteEndpoint[] = [];
  let directory: string;

  beforeAll(async () => {
    directory = mkdtempSync(path.join(tmpdir(), 's3-tests-'));
    world = await startS3({ QUOTAS: '{"buckets": 1000}' });
    endpoints = await Promise.all(Array.from({ length: PROCESSES }, () => openSuiteEndpoint(world)));
  }, 60_000);
  afterAll(async () => {
    await Promise.all(endpoints.map((endpoint) => endpoint.close()));
    await world?.close();
    if (!process.env.SUITES_KEEP) rmSync(directory, { recursive: true, force: true });
  });

  test(
    'the embedded endpoint does what is offered',
    async () => {
      const { outcomes, reasons } = await runSuite(place, endpoints, {
        ...{ marks: SUITE_MARKS, only: process.env.SUITES_ONLY, region: 'local', directory },
      });
      const { offered, notOffered, unexpected, stale, unknown } = judge(outcomes, knownFailures(TABLE));
      const all = offered.passed + offered.failed.length;
      process.stdout.write(
        `${outcomes.size} tests; of ${all} about what is offered ${offered.passed} pass; ${notOffered} are about ` +
          `what is not (${directory})\n`,
      );
      expect(unexpected.map((name) => `${name}: ${reasons.get(name) ?? ''}`)).toEqual([]);
      expect(offered.passed / all).toBeGreaterThanOrEqual(0.95);
      if (process.env.SUITES_ONLY) return;
      expect([stale, unknown]).toEqual([[], []]);
    },
    RUN_MS,
  );
});
