// A new database with the data of a backup.
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { navigate } from '../../router';

const COPY = graphql(`
  mutation CopyDatabase($project_id: ID!, $input: CreateDatabaseInput!) {
    createDatabase(project_id: $project_id, input: $input) {
      id
    }
  }
`);

/** Creates it beside the one of the backup, named after it and the time, and goes to its page. */
export async function restoreIntoNew(
  project_id: string,
  { id: database_id, name, engine }: { id: string; name: string; engine: string },
  backup_id: string,
): Promise<void> {
  const input = {
    name: `${name.slice(0, 50)}-${new Date().toISOString().slice(5, 16).replace(/\D/g, '')}`,
    ...{ engine, restore_from: { database_id, backup_id } },
  };
  const { createDatabase } = await request(COPY, { project_id, input });
  navigate(`/databases/${createDatabase.id}`);
}
