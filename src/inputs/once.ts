/**
 * Makes something, such as a schema, when it is first needed. Bundlers drop what is not.
 *
 * @__NO_SIDE_EFFECTS__
 */
export function once<Made>(make: () => Made): () => Made {
  let made: Made | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
