/** Whether a value is an object with these methods, also if its class is from another copy of a package. */
export function hasMethods<Shape>(
  value: unknown,
  ...names: readonly (keyof Shape & string)[]
): value is Shape {
  if (typeof value !== 'object' || value === null) return false;
  return names.every((name) => typeof Reflect.get(value, name) === 'function');
}
