/** @tier heavy @quarter 3 @covers engines/object_storage migrations/frozen models/object_storage/bucket_object */
// ceph/s3-tests against the embedded endpoint: what is offered passes, but for tests that the table names.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startS3, type S3Service } from '../support/object_storage/s3';
import { expectWhatIsOffered, openSuiteEndpoint, type SuiteEndpoint } from '../support/object_storage/s3_suite';
import { describeSuite } from '../support/runner/suites';

const TABLE = 'test/suites/s3_tests.tsv';
const RUN_MS = 7_200_000;
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
    () => expectWhatIsOffered(place, endpoints, { table: TABLE, region: 'local', directory }),
    RUN_MS,
  );
});
