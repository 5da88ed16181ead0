// Reference catalogs: what this installation offers, page by page.
import { dnsRecordTypeRows } from '../../core/catalog/catalog_definitions/dns_record_types';
import * as catalogs from '../../core/catalog/catalogs';
import type { Context } from '../../core/context';
import { limits } from '../../core/limits';
import type {
  QueryListApplicationTypesArgs,
  QueryListBuildpackBuildersArgs,
  QueryListDatabaseEnginesArgs,
  QueryListDatabasePackageAvailabilityArgs,
  QueryListDatabasePackagesArgs,
  QueryListDnsRecordTypesArgs,
  QueryListPresetsArgs,
  QueryListRegionsArgs,
  QueryListVolumeSizeLimitsArgs,
  VolumeSizeLimit,
} from '../../schema/types';
import { listing } from '../base/listing';
import { promisedCapacity } from './capacity';
import type { Page, PageArguments } from '../base/page';
import { isolationOfRegion } from './region';

export async function regions(ctx: Context, args: QueryListRegionsArgs): Promise<Page<catalogs.RegionRow>> {
  return catalogPage(
    ctx,
    catalogs.regionRows(ctx.config, await isolationOfRegion(ctx)),
    args,
    { of: 'regions', key: 'id' },
    {
      available: (row, wanted) => row.available === wanted,
      feature: (row, wanted) => row.features.some((feature) => feature === wanted),
    },
  );
}

export async function applicationTypes(
  ctx: Context,
  args: QueryListApplicationTypesArgs,
): Promise<Page<catalogs.ApplicationTypeRow>> {
  const rows = catalogs.applicationTypeRows(await ctx.catalogs.facts(), ctx.config.regionId);
  return catalogPage(
    ctx,
    rows,
    args,
    { of: 'applicationTypes', key: 'id' },
    {
      region: (row, wanted) => row.regions.some((region) => region === wanted),
    },
  );
}

export async function buildpackBuilders(
  ctx: Context,
  args: QueryListBuildpackBuildersArgs,
): Promise<Page<catalogs.BuildpackBuilderRow>> {
  return catalogPage(
    ctx,
    catalogs.buildpackBuilderRows(await ctx.catalogs.facts()),
    args,
    { of: 'buildpackBuilders', key: 'id' },
    {},
  );
}

export async function databasePackages(
  ctx: Context,
  args: QueryListDatabasePackagesArgs,
): Promise<Page<catalogs.DatabasePackageRow>> {
  const rows = catalogs.databasePackageRows(await ctx.catalogs.facts());
  return catalogPage(
    ctx,
    rows,
    args,
    { of: 'databasePackages', key: 'id' },
    {
      engine: (row, wanted) => row.engines.some((engine) => engine === wanted),
    },
  );
}

/** Measured now: free memory and disk, less what volumes and databases have been promised. */
export async function packageAvailability(
  ctx: Context,
  args: QueryListDatabasePackageAvailabilityArgs,
): Promise<Page<catalogs.PackageAvailabilityRow>> {
  const facts = await ctx.catalogs.facts();
  const engines = new Map(catalogs.databasePackageRows(facts).map((row) => [row.id, row.engines]));
  const rows = catalogs.availabilityOfPackages(facts, await promisedCapacity(ctx.sql), ctx.config.regionId);
  return catalogPage(
    ctx,
    rows,
    args,
    { of: 'packageAvailability', key: 'database_package' },
    {
      engine: (row, wanted) => engines.get(row.database_package)?.some((engine) => engine === wanted) ?? false,
      region: (row, wanted) => row.regions.some((region) => region === wanted),
      database_package: (row, wanted) => row.database_package === wanted,
    },
  );
}

export async function databaseEngines(
  ctx: Context,
  args: QueryListDatabaseEnginesArgs,
): Promise<Page<catalogs.DatabaseEngineRow>> {
  return catalogPage(
    ctx,
    catalogs.databaseEngineRows(await ctx.catalogs.facts()),
    args,
    { of: 'databaseEngines', key: 'id' },
    {},
  );
}

export async function presets(ctx: Context, args: QueryListPresetsArgs): Promise<Page<catalogs.PresetRow>> {
  return catalogPage(
    ctx,
    catalogs.presetRows(await ctx.catalogs.facts(), ctx.catalogs.presets()),
    args,
    { of: 'presets', key: 'id' },
    {
      category: (row, wanted) => row.category === wanted,
    },
  );
}

export async function dnsRecordTypes(
  ctx: Context,
  args: QueryListDnsRecordTypesArgs,
): Promise<Page<catalogs.DnsRecordTypeRow>> {
  return catalogPage(ctx, dnsRecordTypeRows, args, { of: 'dnsRecordTypes', key: 'type' }, {});
}

/** Sizes that a volume may have, in gigabytes of 2^30 bytes. */
export async function volumeSizeLimits(
  ctx: Context,
  args: QueryListVolumeSizeLimitsArgs,
): Promise<Page<VolumeSizeLimit>> {
  const {
    volumeSizeMinGb: min_gb,
    volumeSizeMaxGb: max_gb,
    volumeSizeStepGb: step_gb,
    volumeSizeDefaultGb: default_gb,
  } = limits;
  const rows = [{ region: ctx.config.regionId, min_gb, max_gb, step_gb, default_gb }];
  return catalogPage(
    ctx,
    rows,
    args,
    { of: 'volumeSizeLimits', key: 'region' },
    { region: (row, wanted) => row.region === wanted },
  );
}

type Filters<Row, Args> = {
  [Name in Exclude<keyof Args, keyof PageArguments>]-?: (row: Row, wanted: NonNullable<Args[Name]>) => boolean;
};

/** One page of the rows that match all given filters, sorted by `key` by default. @throws invalid_cursor */
function catalogPage<Row extends object, Args extends PageArguments>(
  ctx: Context,
  rows: Row[],
  args: Args,
  { of, key }: { of: string; key: keyof Row & string },
  filters: Filters<Row, Args>,
): Page<Row> {
  const given = Object.entries<(row: Row, wanted: never) => boolean>(filters).flatMap(([name, passes]) => {
    const wanted = (args as Record<string, unknown>)[name] as never;
    return wanted == null ? [] : [{ name, wanted, passes }];
  });
  const passing = rows.filter((row) => given.every(({ wanted, passes }) => passes(row, wanted)));
  return listing(ctx, passing, args, {
    key,
    filters: { of, ...Object.fromEntries(given.map(({ name, wanted }) => [name, wanted])) },
  });
}
