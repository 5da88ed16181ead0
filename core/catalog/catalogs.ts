// The Reference catalogs: definitions, filtered by the facts of the host. Pure functions; rows are sorted by id.
import {
  applicationTypeDefinitions,
  builderDefinitions,
  builtFeatures,
  defaultApplicationType,
  languageDefinitions,
  prices as listPrices,
  type Prices,
} from './catalog_definitions';
import {
  databasePackageDefinitions,
  engineDefinitions,
  type EngineDefinition,
  type FeatureDefinition,
} from './catalog_definitions/databases';
import type { Needs } from './catalog_definitions/needs';
import { presetDefinitions, type PresetDefinition } from './catalog_definitions/presets';
import type {
  ApplicationTypeRow,
  BuildpackBuilderRow,
  DatabaseEngineRow,
  DatabasePackageRow,
  EngineFeature,
  EngineVersionRow,
  PackageAvailabilityRow,
  PresetRow,
  RegionIsolation,
  RegionRow,
} from './catalog_rows';
import type { EngineFound, HostFacts, PostgresqlFound } from './host_facts';

export * from './catalog_rows';
export { defaultApplicationType, presetDefinitions, listPrices as prices };
export type { HostFacts, PresetDefinition };

/** The only region of an installation. */
interface RegionSettings {
  regionId: string;
  regionName: string;
  /** City and country. */
  regionLocation?: string | null;
}

/** Capacity reserved by databases and volumes. */
export interface Promised {
  memory_mb: number;
  storage_gb: number;
}

const megabyteBytes = 2 ** 20;
const gigabyteBytes = 2 ** 30;

export function regionRows(settings: RegionSettings, isolation: RegionIsolation | null): RegionRow[] {
  const { regionId: id, regionName: name, regionLocation } = settings;
  const [country = null, city = null] = regionLocation?.split(/, *(?=[^,]*$)/).reverse() ?? [];
  const reported = { network: isolation?.network ?? null, file_isolation: isolation?.files ?? null };
  return [{ id, name, country, city, available: true, features: builtFeatures, ...reported }];
}

/** `available`: the host has enough memory for one instance. */
export function applicationTypeRows(
  facts: HostFacts,
  region: string,
  prices: Prices = listPrices,
): ApplicationTypeRow[] {
  return byId(
    applicationTypeDefinitions.map((type) => ({
      ...type,
      ...priced(type.id, prices),
      regions: [region],
      default: type.id === defaultApplicationType,
      available: type.memory_mb * megabyteBytes <= facts.memory_total_bytes,
    })),
  );
}

/** Only builders that work here, with the installed languages. */
export function buildpackBuilderRows(facts: HostFacts): BuildpackBuilderRow[] {
  const languages = languageDefinitions.filter(({ needs }) => meetsNeeds(facts, needs)).map(({ language }) => language);
  const working = builderDefinitions.filter(({ needs }) => meetsNeeds(facts, needs));
  return byId(
    working.map(({ needs: _, detects, ...builder }) => ({ ...builder, languages: detects ? languages : [] })),
  );
}

/** Only packages of installed engines; those of several nodes, of engines in the cluster. */
export function databasePackageRows(facts: HostFacts, prices: Prices = listPrices): DatabasePackageRow[] {
  const isOffered = (engine: string, nodes: number): boolean =>
    engineDefinitions.some(
      ({ id }) => id === engine && facts[id].some(({ image }) => nodes === 1 || image !== undefined),
    );
  const rows = databasePackageDefinitions.map((pack) => ({
    ...pack,
    ...priced(pack.id, prices, pack.nodes),
    engines: pack.engines.filter((engine) => isOffered(engine, pack.nodes)),
  }));
  return byId(rows.filter(({ engines }) => engines.length > 0));
}

/**
 * Availability of each package: free memory and disk, minus reservations. Conservative: reserved capacity in use counts
 * twice.
 */
export function availabilityOfPackages(facts: HostFacts, promised: Promised, region: string): PackageAvailabilityRow[] {
  // Of what runs in the cluster, the cluster says whether it has room.
  const inCluster = engineDefinitions.filter(({ id }) => facts[id].some(({ image }) => image !== undefined));
  return databasePackageRows(facts).map(({ id, engines, nodes, memory_mb, storage_gb }) => {
    const isFree =
      inCluster.some((engine) => engines.includes(engine.id)) ||
      fits(facts, promised, { memory_mb: nodes * memory_mb, storage_gb: nodes * storage_gb });
    return { database_package: id, regions: isFree ? [region] : [] };
  });
}

/** Whether the host has capacity for this in addition to the reservations. */
export function fits(facts: HostFacts, promised: Promised, more: Promised): boolean {
  const memory = (promised.memory_mb + more.memory_mb) * megabyteBytes;
  const disk = (promised.storage_gb + more.storage_gb) * gigabyteBytes;
  return (
    (more.memory_mb <= 0 || memory <= facts.memory_available_bytes) &&
    (more.storage_gb <= 0 || disk <= facts.disk_free_bytes)
  );
}

/**
 * Installed engines, newest version first. The default is the supported version with most features, the newer one of
 * equals.
 */
export function databaseEngineRows(facts: HostFacts, now = new Date()): DatabaseEngineRow[] {
  return byId(
    engineDefinitions.filter(({ id }) => facts[id].length > 0).map((engine) => engineRow(engine, facts, now)),
  );
}

/**
 * Features of one engine version; empty where it is not installed. @param place of a database: one that a host runs
 * stays there when new ones run in the cluster
 */
export function engineFeatures(
  facts: HostFacts,
  engineId: string,
  series: string,
  place: { on_cluster: boolean },
): EngineFeature[] {
  const engine = engineDefinitions.find(({ id }) => id === engineId);
  const offered = engine && (facts[engine.id] as EngineFound[]).find((one) => one.series === series);
  const found = place.on_cluster ? offered : (offered?.onHost ?? offered);
  return engine && found ? featuresOf(found, engine, facts) : [];
}

/** The port that clients of the engine expect. @throws Error for an unknown engine */
export function defaultPortOf(engineId: string): number {
  const found = engineDefinitions.find(({ id }) => id === engineId);
  if (!found) throw new Error(`no engine ${engineId}`);
  return found.default_port;
}

/** Whether new databases of the version run in the cluster. */
export function runsOnCluster(facts: HostFacts, engineId: string, series: string): boolean {
  const engine = engineDefinitions.find(({ id }) => id === engineId);
  return engine !== undefined && facts[engine.id].some((one) => one.series === series && one.image !== undefined);
}

/** Series to which a database can be upgraded where it runs: in the cluster to none. */
export function installedSeries(facts: HostFacts, engineId: string, place: { on_cluster: boolean }): string[] {
  if (place.on_cluster) return [];
  const engine = engineDefinitions.find(({ id }) => id === engineId);
  const found: readonly EngineFound[] = engine ? facts[engine.id] : [];
  const isHere = ({ image, onHost }: EngineFound): boolean => image === undefined || onHost !== undefined;
  return found.filter(isHere).map(({ series }) => series);
}

/** Whether it is a key-value engine, and so has no named databases. */
export function isKeyValue(engine: string): boolean {
  return engine === 'redis' || engine === 'valkey';
}

/** Whether series `a` is newer than `b`: 16 than 15, 10.11 than 10.6. */
export function isNewerSeries(a: string, b: string): boolean {
  return compareSeries(a, b) > 0;
}

/** Presets whose runtime, and whose engine if they need one, is installed. */
export function presetRows(
  facts: HostFacts,
  definitions: readonly PresetDefinition[] = presetDefinitions,
): PresetRow[] {
  const working = definitions.filter(({ needs }) => meetsNeeds(facts, needs));
  return byId(
    working.map(({ id, name, description, category, image, application_type, needs, variables }) => ({
      id,
      name,
      description,
      category,
      icon_url: null,
      image,
      application_type,
      requires_engine: needs.engine ?? null,
      variables,
    })),
  );
}

/** Whether the host meets all requirements. */
export function meetsNeeds(facts: HostFacts, needs: Needs): boolean {
  const programs = (needs.programs ?? []).every((name) => facts.programs[name] !== undefined);
  const engine =
    needs.engine === undefined || engineDefinitions.some(({ id }) => id === needs.engine && facts[id].length > 0);
  const builder = needs.ociBuilder === undefined || facts.oci_builders.includes(needs.ociBuilder);
  return programs && engine && builder;
}

/** Price for 730 hours, a twelfth of a year, rounded half up to cents. Decimal strings: money is never a float. */
export function monthlyPrice(hourly: string): string {
  const [whole = '0', fraction = ''] = hourly.split('.');
  const scale = 10n ** BigInt(fraction.length);
  const cents = (BigInt(whole + fraction) * 730n * 100n * 2n + scale) / (2n * scale);
  return `${cents / 100n}.${String(cents % 100n).padStart(2, '0')}`;
}

function engineRow(engine: EngineDefinition, facts: HostFacts, now: Date): DatabaseEngineRow {
  const found: EngineFound[] = [...facts[engine.id]].sort((a, b) => compareSeries(b.series, a.series));
  const supported = found.filter(({ series }) => !isOver(engine, series, now));
  const best = bestOf(supported.length > 0 ? supported : found, engine, facts);
  const versions: EngineVersionRow[] = found.map(({ series }) => ({
    version: series,
    default: series === best.series,
    status: isOver(engine, series, now) ? 'deprecated' : 'supported',
    end_of_life_on: engine.end_of_life[series] ?? null,
  }));
  return {
    id: engine.id,
    name: engine.name,
    versions,
    features: featuresOf(best, engine, facts),
    default_port: engine.default_port,
  };
}

function bestOf(newestFirst: EngineFound[], engine: EngineDefinition, facts: HostFacts): EngineFound {
  const abilities = (found: EngineFound) => featuresOf(found, engine, facts).length;
  return newestFirst.reduce((best, one) => (abilities(one) > abilities(best) ? one : best));
}

function featuresOf(found: EngineFound, engine: EngineDefinition, facts: HostFacts): EngineFeature[] {
  const tools = (found as Partial<PostgresqlFound>).tools ?? [];
  const works = ({ tool, program, host_only }: FeatureDefinition) =>
    !(host_only && found.image !== undefined) &&
    (tool === undefined || tools.includes(tool)) &&
    (program === undefined || facts.programs[program] !== undefined);
  return engine.features.filter(works).map(({ feature }) => feature);
}

function isOver(engine: EngineDefinition, series: string, now: Date): boolean {
  const end = engine.end_of_life[series];
  return end !== undefined && now.toISOString().slice(0, 10) > end;
}

function compareSeries(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}

function priced(
  id: string,
  prices: Prices,
  nodes = 1,
): { price_hourly: string; price_monthly: string; currency: string } {
  const each = prices.hourly[id];
  if (each === undefined) throw new Error(`no price for ${id}`);
  const hourly = timesPrice(each, nodes);
  return { price_hourly: hourly, price_monthly: monthlyPrice(hourly), currency: prices.currency };
}

function timesPrice(price: string, count: number): string {
  const [whole = '0', fraction = ''] = price.split('.');
  const digits = (BigInt(whole + fraction) * BigInt(count)).toString().padStart(fraction.length + 1, '0');
  const end = digits.length - fraction.length;
  return fraction === '' ? digits : `${digits.slice(0, end)}.${digits.slice(end)}`;
}

function byId<T extends { id: string }>(rows: T[]): T[] {
  return [...rows].sort((a, b) => (a.id < b.id ? -1 : 1));
}
