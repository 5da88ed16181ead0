// Extensions of PostgreSQL that only a superuser may create, and that the platform creates for owners of databases: a
// server is theirs alone, but neither files and programs of the machine nor other addresses are.

/** Reviewed by name: what they add works on data of the database alone. */
const SAFE: ReadonlySet<string> = new Set([
  // Of PostgreSQL itself (https://www.postgresql.org/docs/current/contrib.html).
  ...['amcheck', 'autoinc', 'bloom', 'dict_xsyn', 'earthdistance', 'insert_username', 'intagg', 'moddatetime'],
  ...['pg_buffercache', 'pg_freespacemap', 'pg_prewarm', 'pg_stat_statements', 'pg_visibility', 'pgrowlocks'],
  ...['pgstattuple', 'refint', 'sslinfo', 'tcn'],
  // Of others.
  ...['address_standardizer', 'address_standardizer_data_us', 'h3', 'h3_postgis', 'hll', 'hypopg', 'ip4r', 'pgmp'],
  ...['pgrouting', 'pgtap', 'postgis', 'postgis_raster', 'postgis_sfcgal', 'postgis_tiger_geocoder'],
  ...['postgis_topology', 'prefix', 'q3c', 'rum', 'semver', 'tdigest', 'unit', 'vector'],
]);

const CONNECTS = 'It connects from the server to other addresses.';
const READS_FILES = 'It reads files of the server.';
const RUNS_PROGRAMS = 'Its language reads files and runs programs of the server.';
const IN_BACKGROUND = 'It runs in the background of the server, which the platform does not set up.';
const CHANGES_PAGES = 'It reads or changes pages of tables past all checks.';

const REFUSED: Readonly<Record<string, string>> = {
  ...because(CONNECTS, ['dblink', 'http', 'mysql_fdw', 'ogr_fdw', 'postgres_fdw', 'pg_net', 'tds_fdw']),
  ...because(READS_FILES, ['adminpack', 'file_fdw', 'orafce', 'xml2']),
  ...because(RUNS_PROGRAMS, ['plperlu', 'plpython3u', 'pltclu', 'plsh', 'bool_plperlu', 'hstore_plperlu']),
  ...because(RUNS_PROGRAMS, ['hstore_plpython3u', 'jsonb_plperlu', 'jsonb_plpython3u', 'ltree_plpython3u']),
  ...because(IN_BACKGROUND, ['pg_cron', 'pg_partman', 'pg_squeeze', 'timescaledb']),
  ...because(CHANGES_PAGES, ['pageinspect', 'pg_surgery', 'pg_walinspect']),
};

/** Libraries that the server loads at its start for an extension to work. */
export const PRELOADED: ReadonlySet<string> = new Set(['pg_stat_statements']);

/** Why the platform does not create an extension; null: it does. `isTrusted`: PostgreSQL lets owners create it. */
export function extensionRefusal(name: string, isTrusted: boolean): string | null {
  if (isTrusted || SAFE.has(name)) return null;
  return REFUSED[name] ?? 'The platform does not know what it gives access to.';
}

function because(reason: string, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, reason]));
}
