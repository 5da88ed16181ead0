// Rights of tenants in their database.
import type { DatabaseServer, ServerUser } from '../../database';
import { DriverError } from '../../../core/driver';
import { identifier } from './connection';

export const privilegesOf: Record<ServerUser['access'], string> = {
  admin: 'ALL PRIVILEGES',
  read_write: 'SELECT, INSERT, UPDATE, DELETE, EXECUTE, CREATE TEMPORARY TABLES, LOCK TABLES, SHOW VIEW',
  read_only: 'SELECT, SHOW VIEW',
};
// Over the storage limit, only statements that free space are allowed. Only the platform can grant the rest.
export const privilegesWhenFull: Record<ServerUser['access'], string> = {
  admin: 'SELECT, DELETE, DROP, SHOW VIEW',
  read_write: 'SELECT, DELETE, SHOW VIEW',
  read_only: privilegesOf.read_only,
};

/** @throws DriverError invalid for an invalid database name */
export function databaseOf({ database_name: name }: DatabaseServer): string {
  if (name === null || !/^[a-z][a-z0-9_]{0,62}$/.test(name))
    throw new DriverError('invalid', 'The engine does not accept the name of the database.');
  return name;
}

/** The database in a GRANT, where its name is a pattern: _ would match any character. */
export function grantedDatabase(spec: DatabaseServer): string {
  return identifier(databaseOf(spec).replaceAll('_', '\\_'));
}
