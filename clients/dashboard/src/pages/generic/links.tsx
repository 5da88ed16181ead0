// Links between what belongs together: ids of kinds that have pages.
import type { Row } from '../../api/resources/query';
import {
  hrefOf,
  keyOfKind,
  parametersOf,
  placesAbove,
  type Place,
  type ResourceTable,
} from '../../api/resources/table';
import { pageProject } from '../../keyboard';
import { ResourceLink } from '../../parts/resource_name';
import { matchPath } from '../../router';

/** What a value on a page stands in. */
export interface Around {
  table: ResourceTable;
  place: Place;
  /** Patterns of pages that are made by hand. */
  patterns: readonly string[];
}

export function Link({ field, id, row, around }: { field: string; id: string; row: Row; around: Around }) {
  if (field === 'id') return <code>{id}</code>;
  const projectId = around.place.projectId ?? pageProject.value;
  return <ResourceLink projectId={projectId} id={id} href={hrefOfId(field, id, row, around)} />;
}

function hrefOfId(field: string, id: string, row: Row, { table, place, patterns }: Around): string | undefined {
  const { projectId } = place;
  if (field === 'project_id') return `/projects/${encodeURIComponent(id)}`;
  const key = keyOfKind(table, field);
  const page = key === undefined ? undefined : table.pages[key];
  if (!key || !page) return undefined;
  const names = parametersOf(page.path);
  const above = names.slice(0, -1).map((_, index) => idAbove(table, key, index, row, place));
  if (above.some((one) => one === undefined)) return undefined;
  const ids = [...(above as string[]), id];
  return handMade(key, projectId, ids, patterns) ?? hrefOf(key, projectId, ids);
}

/** The id of what a kind lies in, such as the application of a deployment: in the row, or in the address. */
function idAbove(table: ResourceTable, key: string, index: number, row: Row, place: Place): string | undefined {
  const above = key
    .split('{}')
    .slice(0, index + 1)
    .join('{}')
    .concat('{}');
  const inRow = Object.entries(row).find(
    ([name, value]) => typeof value === 'string' && keyOfKind(table, name) === above,
  );
  if (inRow) return String(inRow[1]);
  return place.key.startsWith(above) ? place.ids[index] : undefined;
}

/** Address of the page that is made by hand for a key; undefined where there is none. */
export function handMade(
  key: string,
  projectId: string | undefined,
  ids: readonly string[],
  patterns: readonly string[],
): string | undefined {
  const rest = hrefOf(key, undefined, ids).replace(/^\/resources/, '');
  const found = [rest, projectId ? `/projects/${projectId}${rest}` : ''].find(
    (path) => path && patterns.some((pattern) => !pattern.endsWith('/*') && matchPath(pattern, path)),
  );
  if (key === 'project' && projectId) return `/projects/${projectId}`;
  return key === 'projects' ? '/' : found;
}

/** Where one is after something has been deleted. */
export function hrefAfterDeletion({ table, place }: Around): string {
  const above = placesAbove(table, place).at(-1);
  if (place.key === 'project') return '/';
  if (!place.key.endsWith('{}') || !above) return hrefOf(place.key, place.projectId, place.ids);
  return hrefOf(above.key, above.projectId, above.ids);
}
