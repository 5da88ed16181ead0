// What a release says of itself: its parts (CycloneDX 1.5), and where it comes from (SLSA provenance v1, in-toto).
import { createHash } from 'node:crypto';
import * as path from 'node:path';
import * as fs from 'node:fs';

/**
 * What is installed of the lock file, and the programs beside it. `npm sbom` refuses a lock file whose development
 * packages have been given other versions than they ask for.
 * @param app the folder with the lock file and the installed packages
 * @param origin its `programs` are pairs of name with version and checksum, as npm writes it
 */
export function partsOf(app, { version, epoch, programs }) {
  const { packages } = JSON.parse(fs.readFileSync(path.join(app, 'package-lock.json'), 'utf8'));
  const installed = Object.entries(packages).filter(([place]) => place && fs.existsSync(path.join(app, place)));
  const components = [...installed.map(packageOf), ...programs.map(componentOf)];
  const digest = createHash('sha256').update(JSON.stringify([version, components])).digest('hex');
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    serialNumber: `urn:uuid:${digest.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*/, '$1-$2-5$3-8$4-$5')}`,
    version: 1,
    metadata: {
      timestamp: timeOf(epoch),
      component: { 'bom-ref': 'platform-api', type: 'application', name: 'platform-api', version },
    },
    components,
  };
}

/** A workspace has its name in the lock file, an installed package in its place. */
function packageOf([place, { name = place.replace(/^.*node_modules\//, ''), version, license, integrity }]) {
  return {
    'bom-ref': place,
    type: 'library',
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    ...(license && { licenses: [{ expression: license }] }),
    ...(integrity?.startsWith('sha512-') && { hashes: [{ alg: 'SHA-512', content: digestOf(integrity) }] }),
  };
}

function componentOf([program, integrity]) {
  const [name, version] = program.split('@');
  const hashes = [{ alg: 'SHA-512', content: digestOf(integrity) }];
  return { 'bom-ref': program, type: 'application', name, version, purl: `pkg:npm/${name}@${version}`, hashes };
}

const digestOf = (integrity) => Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex');

/** @param subjects files of the release with their sha256. `origin` as above */
export function provenanceOf(subjects, { version, commit, epoch, arch, programs }) {
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: subjects.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:platform-api:npm-run-release:1',
        externalParameters: { version, arch },
        resolvedDependencies: [
          { name: 'platform-api', digest: { gitCommit: commit } },
          ...programs.map((program) => ({
            name: program[0],
            uri: componentOf(program).purl,
            digest: { sha512: digestOf(program[1]) },
          })),
        ],
      },
      runDetails: {
        // Without the version of Node.js that ran it: that changes no byte of what it made.
        builder: { id: 'urn:platform-api:tools:release' },
        metadata: { finishedOn: timeOf(epoch) },
      },
    },
  };
}

function timeOf(epoch) {
  return new Date(epoch * 1000).toISOString();
}
