// Takes changes back by their entries in the activity.
import { request } from '../api/client';
import { graphql } from '../api/graphql';

const REVERT = graphql(`
  mutation RevertActivity($id: ID!) {
    revertActivity(id: $id) {
      id
      reverted_by
    }
  }
`);
const ENTRY = graphql(`
  query EntryToRevert($id: ID!, $resource_id: ID, $action: String) {
    listProjectActivity(id: $id, resource_id: $resource_id, action: $action, limit: 1) {
      data {
        id
      }
    }
  }
`);

/** @throws ApiError where it has changed again since, or cannot be taken back */
export async function revertEntry(id: string): Promise<void> {
  await request(REVERT, { id });
}

interface Change {
  projectId: string;
  resourceId: string;
  /** As in the activity, such as `dns_record.deleted`. */
  action: string;
}

/** For the notice after a change that answers nothing to make it again from. */
export async function revertChange({ projectId, resourceId, action }: Change): Promise<void> {
  const { listProjectActivity } = await request(ENTRY, { id: projectId, resource_id: resourceId, action });
  const [entry] = listProjectActivity.data;
  if (!entry) throw new Error('The change is not in the activity.');
  await revertEntry(entry.id);
}

const IN_BIN = graphql(`
  query DeletedInBin($id: ID!, $resource_id: ID!) {
    listDeletedResources(id: $id, resource_id: $resource_id, limit: 1) {
      data {
        id
      }
    }
  }
`);
const RESTORE = graphql(`
  mutation UndoDelete($id: ID!) {
    restoreDeletedResource(id: $id) {
      resource {
        id
      }
    }
  }
`);

const DELETED_PROJECT = graphql(`
  query DeletedProject($name: String) {
    listDeletedProjects(name: $name, limit: 100) {
      data {
        id
        resource {
          id
        }
      }
    }
  }
`);
export const RESTORE_PROJECT = graphql(`
  mutation RestoreDeletedProject($id: ID!) {
    restoreDeletedProject(id: $id) {
      notes
    }
  }
`);

/** As `undoOfDelete`, of a project: it is in no other one. */
export async function undoOfDeletedProject(
  { id, name }: { id: string; name: string },
  then: () => unknown,
): Promise<(() => Promise<unknown>) | undefined> {
  const found = await request(DELETED_PROJECT, { name }).catch(() => null);
  const entry = found?.listDeletedProjects.data.find(({ resource }) => resource.id === id);
  if (!entry) return undefined;
  return async () => {
    await request(RESTORE_PROJECT, { id: entry.id });
    await then();
  };
}

/**
 * What restores a resource that was just deleted; undefined where it is not kept in the bin.
 * @param then shows it again
 */
export async function undoOfDelete(
  projectId: string,
  resourceId: string,
  then: () => unknown,
): Promise<(() => Promise<unknown>) | undefined> {
  // The delete is done, whether the bin answers or not.
  const found = await request(IN_BIN, { id: projectId, resource_id: resourceId }).catch(() => null);
  const entry = found?.listDeletedResources.data[0];
  if (!entry) return undefined;
  return async () => {
    await request(RESTORE, { id: entry.id });
    await then();
  };
}
