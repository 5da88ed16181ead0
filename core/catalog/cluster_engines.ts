// Engines of which new databases run in the cluster.
import { enginesInPods, type DatabaseImage } from '../settings/workloads';
import type { EngineFound, HostFacts, PostgresqlFound } from './host_facts';

/** The facts of the host with the engines for which the operator has named an image. */
export function withImages(facts: HostFacts, images: readonly DatabaseImage[]): HostFacts {
  if (images.length === 0) return facts;
  const engines = enginesInPods.map((engine) => [engine, merged(facts[engine], imagesOf(engine, images))] as const);
  return { ...facts, ...Object.fromEntries(engines) };
}

function imagesOf(engine: string, images: readonly DatabaseImage[]): DatabaseImage[] {
  return images.filter((one) => one.engine === engine);
}

function merged(found: readonly EngineFound[], images: readonly DatabaseImage[]): EngineFound[] {
  const others = found.filter(({ series }) => !images.some(({ version }) => version === series));
  const inPods = images.map(({ version, image }): EngineFound => {
    const onHost = found.find(({ series }) => series === version);
    const tools = toolsFor(version, found);
    return { version, series: version, path: '', image, ...(tools && { tools }), ...(onHost && { onHost }) };
  });
  return [...others, ...inPods];
}

/** Programs of the host for servers of this version: those of PostgreSQL connect to servers that are not newer. */
function toolsFor(version: string, found: readonly EngineFound[]): string[] | null {
  const all = found.filter((one): one is PostgresqlFound => 'tools' in one && Number(one.series) >= Number(version));
  return all.length === 0 ? null : all.flatMap(({ tools }) => tools);
}
