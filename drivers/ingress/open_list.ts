// A list that things join and leave in any order, in constant time. Not a Set: V8 makes a new table of it every few
// changes, and each old one refers to the next. Once one of them is old, all things that have ever been in the later
// ones may outlive the collections of young objects.

export interface OpenListItem {
  /** Its place; -1: it is in none. */
  index: number;
}

export function joinList<T extends OpenListItem>(list: T[], item: T): void {
  item.index = list.length;
  list.push(item);
}

/** The last one takes its place: whoever leaves while the list is gone through must be gone through from the end. */
export function leaveList<T extends OpenListItem>(list: T[], item: T): void {
  const { index } = item;
  if (index < 0) return;
  item.index = -1;
  const last = list.pop() as T;
  if (last === item) return;
  list[index] = last;
  last.index = index;
}

/** Calls the function with each, the last first. It may make that one leave, and no other that comes later. */
export function forEachOpen<T extends OpenListItem>(list: readonly T[], visit: (item: T) => void): void {
  for (let index = list.length - 1; index >= 0; index -= 1) {
    const item = list[index];
    if (item !== undefined) visit(item);
  }
}
