// What the pages of lists and documents have in common: where they are, what they offer, how they stay current.
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { timeOfApi } from '../../api/client';
import { useStream } from '../../api/follow';
import { graphql } from '../../api/graphql';
import { hrefOf, placesAbove, rootOf, type Operation, type Place } from '../../api/resources/table';
import { Page, type Tab } from '../../parts/page';
import { mayActAs } from '../../session';
import { handMade, type Around } from './links';
import { commandOf, pageTitle, words } from './words';

const CHANGES = graphql(`
  subscription ProjectChanges($id: ID!, $after: String) {
    followProjectActivity(id: $id, after: $after) {
      position
      id
      created_at
    }
  }
`);

/** Calls back when something has happened in the project of the page. */
export function useChanges(projectId: string | undefined, changed: () => void): void {
  const opened = useRef(timeOfApi());
  useStream(CHANGES, projectId ? { id: projectId } : null, (rows) => {
    // The stream begins with entries that are older than the page.
    if (rows.some(({ created_at }) => Date.parse(created_at) > opened.current)) changed();
  });
}

export function mayCall(operation: Operation, { projectId }: Place): boolean {
  return operation.role === 'viewer' || operation.isGlobal || !projectId || mayActAs(operation.role, projectId);
}

/** Operations of a page that the person may call; last those that lose something. */
export function offered({ table, place }: Around): Operation[] {
  const found = place.page.operations.flatMap((name) => {
    const operation = table.operations[name];
    return operation && mayCall(operation, place) ? [operation] : [];
  });
  return found.sort((left, right) => Number(left.destroys) - Number(right.destroys));
}

interface FrameProps {
  around: Around;
  title: string;
  beside?: ComponentChildren;
  operation: Operation;
  /** There is nothing to do something with. */
  isMissing?: boolean;
  children: ComponentChildren;
}

export function Frame({ around, title, beside, operation, isMissing, children }: FrameProps) {
  const { place, patterns } = around;
  const own = handMade(place.key, place.projectId, place.ids, patterns);
  const actions = (
    <>
      {own && (
        <a role="button" class="quiet" href={own}>
          Open its page
        </a>
      )}
      {!isMissing && <Actions around={around} />}
    </>
  );
  return (
    <Page
      title={title}
      beside={beside}
      trail={trailTo(around)}
      actions={actions}
      projectId={place.projectId}
      command={commandOf(operation, place)}
    >
      {children}
    </Page>
  );
}

/** Pages above the one of a place. */
export function trailTo({ table, place }: Around): Tab[] {
  const root = { href: rootOf(place.page.scope === 'account' ? undefined : place.projectId), label: 'All resources' };
  return [
    root,
    ...placesAbove(table, place).map(({ key, page, ids, projectId }) => ({
      href: hrefOf(key, projectId, ids),
      label: page.isList || !ids.length ? pageTitle(key) : (ids.at(-1) ?? ''),
    })),
  ];
}

function Actions({ around }: { around: Around }) {
  return (
    <>
      {offered(around).map((operation) => (
        <a
          key={operation.name}
          role="button"
          class={operation.destroys ? 'danger' : 'quiet'}
          href={`${hrefOf(around.place.key, around.place.projectId, around.place.ids)}?do=${operation.name}`}
        >
          {words(operation.name)}
        </a>
      ))}
    </>
  );
}

/** Pages right below a page that the person may read. */
export function Below({ around }: { around: Around }) {
  const { table, place } = around;
  const keys = place.page.pages.filter((key) => {
    const read = table.operations[table.pages[key]?.read ?? ''];
    return read && !key.endsWith('{}') && mayCall(read, place);
  });
  if (!keys.length) return null;
  return (
    <section>
      <header class="section-head">
        <h2>Related resources</h2>
      </header>
      <ul class="kinds">
        {keys.map((key) => (
          <li key={key}>
            <a href={hrefOf(key, place.projectId, place.ids)}>{pageTitle(key)}</a>
            <small class="faint">{table.operations[table.pages[key]?.read ?? '']?.summary}</small>
          </li>
        ))}
      </ul>
    </section>
  );
}
