// What a release says of itself: its parts (CycloneDX 1.5), and where it comes from (SLSA provenance v1, in-toto).
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as path from 'node:path';
import * as fs from 'node:fs';

/** @param app the folder with package.json and the lock file */
export function partsOf(app, { version, epoch, programs }) {
  const words = ['sbom', '--omit=dev', '--sbom-format=cyclonedx', '--package-lock-only'];
  const parts = JSON.parse(execFileSync('npm', words, { cwd: app, encoding: 'utf8', maxBuffer: 2 ** 26 }));
  const installed = (part) => fs.existsSync(path.join(app, propertyOf(part, 'cdx:npm:package:path') ?? '-'));
  parts.components = parts.components.filter(installed);
  for (const program of programs) parts.components.push(componentOf(program));
  const known = new Set([parts.metadata.component['bom-ref'], ...parts.components.map((part) => part['bom-ref'])]);
  parts.dependencies = parts.dependencies
    .filter(({ ref }) => known.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => known.has(one)) }));
  Object.assign(parts.metadata.component, { name: 'platform-api', type: 'application' });
  parts.metadata.timestamp = timeOf(epoch);
  const digest = createHash('sha256').update(JSON.stringify([version, parts.components])).digest('hex');
  parts.serialNumber = `urn:uuid:${digest.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*/, '$1-$2-5$3-8$4-$5')}`;
  return parts;
}

function propertyOf(part, name) {
  return part.properties?.find((property) => property.name === name)?.value;
}

function componentOf(program) {
  const [name, version] = program.split('@');
  return { 'bom-ref': program, type: 'application', name, version, purl: `pkg:npm/${name}@${version}` };
}

/** @param subjects files of the release with their sha256 */
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
          ...programs.map((program) => ({ name: program, uri: componentOf(program).purl })),
        ],
      },
      runDetails: {
        builder: { id: 'urn:platform-api:tools:release', version: { node: process.versions.node } },
        metadata: { finishedOn: timeOf(epoch) },
      },
    },
  };
}

function timeOf(epoch) {
  return new Date(epoch * 1000).toISOString();
}
