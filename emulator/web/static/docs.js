// Draws an OpenAPI document as a page to read. All text goes in as text, never as markup.
"use strict";

(() => {
  const METHODS = ["get", "post", "put", "patch", "delete"];
  const DEEPEST = 8; // levels of a shape that are drawn; a shape may hold itself

  const make = (tag, { text, ...attributes } = {}, ...children) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child != null));
    return element;
  };

  let whole = {};
  const resolved = (part) => {
    let seen = 0;
    while (part && part.$ref && seen < 20) {
      part = part.$ref.replace(/^#\//, "").split("/").reduce(
        (inner, name) => (inner || {})[decodeURIComponent(name).replaceAll("~1", "/").replaceAll("~0", "~")], whole);
      seen += 1;
    }
    return part || {};
  };

  const typeOf = (schema) => {
    const shape = resolved(schema);
    if (shape.const !== undefined) return JSON.stringify(shape.const);
    const several = shape.anyOf || shape.oneOf;
    if (several) return [...new Set(several.map(typeOf))].join(" or ");
    if (shape.enum) return "one of";
    const type = Array.isArray(shape.type) ? shape.type.join(" or ") : shape.type;
    if (type === "array") return `list of ${typeOf(shape.items || {})}`;
    return [type || (shape.properties || shape.allOf ? "object" : "any"), shape.format].filter(Boolean).join(", ");
  };

  const limits = (schema) => {
    const shape = resolved(schema);
    const found = [];
    const between = (low, high, unit = "") => {
      const bounds = low === undefined ? `at most ${high}` : high === undefined ? `at least ${low}` : `${low} to ${high}`;
      const counted = unit && (high ?? low) === 1 ? unit : unit && `${unit}s`;
      if (low !== undefined || high !== undefined) found.push(`${bounds} ${counted}`.trim());
    };
    if (!shape.enum) between(shape.minLength, shape.maxLength, "character");
    between(shape.minimum, shape.maximum);
    between(shape.minItems, shape.maxItems, "item");
    if (shape.pattern !== undefined) found.push(`pattern ${shape.pattern}`);
    if (shape.default !== undefined) found.push(`default ${JSON.stringify(shape.default)}`);
    if (shape.enum) {
      const shown = shape.enum.slice(0, 30).map(String).join(", ");
      found.push(shape.enum.length > 30 ? `${shown} and ${shape.enum.length - 30} more` : shown);
    }
    return found.join(" · ");
  };

  const members = (schema) => {
    const shape = resolved(schema);
    const own = { ...(shape.properties || {}) };
    const required = new Set(shape.required || []);
    for (const part of [...(shape.allOf || []), ...(shape.anyOf || []), ...(shape.oneOf || [])]) {
      const inner = members(part);
      Object.assign(own, inner.own);
      for (const name of inner.required) if (shape.allOf) required.add(name);
    }
    return { own, required };
  };

  const drawShape = (schema, depth = 0) => {
    const shape = resolved(schema);
    if (shape.type === "array" && shape.items) return drawShape(shape.items, depth);
    const { own, required } = members(shape);
    const names = Object.keys(own);
    if (!names.length || depth > DEEPEST) return null;
    return make("ul", { class: "shape" }, ...names.map((name) => {
      const inner = drawShape(own[name], depth + 1);
      const head = [
        make("code", { text: name }), " ", make("span", { class: "type", text: typeOf(own[name]) }),
        required.has(name) ? make("span", { class: "tag", text: "required" }) : null,
      ];
      const text = resolved(own[name]).description || own[name].description;
      const notes = [
        limits(own[name]) ? make("span", { class: "limits", text: limits(own[name]) }) : null,
        text ? make("span", { class: "about", text }) : null,
      ];
      if (!inner) return make("li", {}, ...head, ...notes);
      return make("li", {}, make("details", { open: depth < 1 }, make("summary", {}, ...head), ...notes, inner));
    }));
  };

  const drawParameters = (parameters) => {
    const groups = { path: "In the path", query: "In the query", header: "Headers" };
    return Object.entries(groups).flatMap(([place, title]) => {
      const found = parameters.map(resolved).filter((parameter) => parameter.in === place);
      if (!found.length) return [];
      const list = make("ul", { class: "shape" }, ...found.map((parameter) => make("li", {},
        make("code", { text: parameter.name }), " ",
        make("span", { class: "type", text: typeOf(parameter.schema || {}) }),
        parameter.required ? make("span", { class: "tag", text: "required" }) : null,
        limits(parameter.schema || {}) ? make("span", { class: "limits", text: limits(parameter.schema || {}) }) : null,
        parameter.description ? make("span", { class: "about", text: parameter.description }) : null)));
      const many = place === "header" && found.length > 3;
      return [many ? make("details", {}, make("summary", { text: `${title} (${found.length})` }), list)
        : make("div", {}, make("h3", { text: title }), list)];
    });
  };

  // A shape that is one of several is drawn once for each, under its name.
  const drawSchema = (schema) => {
    const several = resolved(schema).oneOf || resolved(schema).anyOf || [];
    const objects = several.filter((part) => Object.keys(members(part).own).length);
    if (objects.length < 2) return drawShape(schema) || make("p", { class: "type", text: typeOf(schema) });
    return make("div", { class: "variants" }, ...objects.map((part, index) => make("details", { open: index === 0 },
      make("summary", { text: resolved(part).title || (part.$ref || "").split("/").pop() || `Form ${index + 1}` }),
      resolved(part).description ? make("p", { class: "about", text: resolved(part).description }) : null,
      drawShape(part))));
  };

  const drawExamples = ({ example, examples }) => {
    const named = Object.entries(examples || {}).map(([name, part]) => [`Example: ${name}`, resolved(part).value]);
    if (example !== undefined) named.push(["Example", example]);
    return named.map(([title, value]) => make("details", { class: "example", open: named.length === 1 },
      make("summary", { text: title }),
      make("pre", { tabindex: "0", "aria-label": title, text: JSON.stringify(value, null, 2) })));
  };

  const drawContent = (content) => Object.entries(content || {}).flatMap(([type, part]) => [
    make("p", { class: "soft", text: type }),
    part.schema ? drawSchema(part.schema) : null,
    ...drawExamples(part),
  ].filter(Boolean));

  const drawOperation = (path, method, operation, shared) => {
    const body = resolved(operation.requestBody);
    const parameters = [...(shared || []), ...(operation.parameters || [])];
    const inside = make("div", { class: "inside" },
      operation.description ? make("p", { class: "about", text: operation.description }) : null,
      ...drawParameters(parameters),
      body.content ? make("div", {}, make("h3", { text: "Body" }), ...drawContent(body.content)) : null,
      make("h3", { text: "Answers" }),
      make("ul", { class: "answers" }, ...Object.entries(operation.responses || {}).map(([status, answer]) => {
        const found = resolved(answer);
        const head = [make("b", { class: `status s${status[0]}`, text: status }), " ", found.description || ""];
        const content = drawContent(found.content);
        return make("li", {}, content.length ? make("details", {}, make("summary", {}, ...head), ...content)
          : make("p", {}, ...head));
      })));
    const name = operation.operationId || `${method}-${path}`;
    return make("details", { class: "operation", id: name, "data-text": `${method} ${path} ${name} ${operation.summary || ""}`.toLowerCase() },
      make("summary", {},
        make("span", { class: `method ${method}`, text: method.toUpperCase() }),
        make("code", { class: "path", text: path }),
        make("span", { class: "summary", text: operation.summary || "" })),
      make("p", { class: "soft" }, "operationId ", make("code", { text: name })), inside);
  };

  // What the page has to say about itself; the drawn document is no news, and is not read out.
  const status = document.querySelector("[role=status]");
  const placeOf = (tag) => `tag-${tag.replaceAll(" ", "-")}`; // an id has no blanks

  const draw = (source) => {
    whole = source;
    status.textContent = "";
    const groups = new Map();
    for (const [path, item] of Object.entries(source.paths || {})) {
      for (const method of METHODS) {
        if (!item[method]) continue;
        const tag = (item[method].tags || [])[0] || path.split("/").filter((part) => part && part !== "v1" && !part.startsWith("{"))[0] || "other";
        if (!groups.has(tag)) groups.set(tag, []);
        groups.get(tag).push(drawOperation(path, method, item[method], item.parameters));
      }
    }
    const about = Object.fromEntries((source.tags || []).map((tag) => [tag.name, tag.description]));
    const place = document.querySelector(".operations");
    const contents = document.querySelector(".contents");
    place.replaceChildren(...[...groups].map(([tag, operations]) => make("section", { "aria-label": tag, id: placeOf(tag) },
      make("h2", { text: tag }), about[tag] ? make("p", { class: "soft", text: about[tag] }) : null, ...operations)));
    contents.replaceChildren(make("ul", {}, ...[...groups].map(([tag, operations]) =>
      make("li", {}, make("a", { href: `#${placeOf(tag)}` }, tag, " ", make("span", { class: "count", text: String(operations.length) }))))));
  };

  const openNamed = () => {
    const named = document.getElementById(location.hash.slice(1));
    if (named?.matches("details")) named.open = true;
    named?.scrollIntoView();
  };

  const find = document.getElementById("find");
  find.hidden = false;
  find.addEventListener("input", () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = false;
    for (const section of document.querySelectorAll(".operations section")) {
      let any = false;
      for (const operation of section.querySelectorAll(".operation")) {
        operation.hidden = !words.every((word) => operation.dataset.text.includes(word));
        any ||= !operation.hidden;
      }
      section.hidden = !any;
      document.querySelector(`.contents [href="#${section.id}"]`).parentElement.hidden = !any;
      found ||= any;
    }
    status.textContent = found ? "" : "No operation fits.";
  });
  document.addEventListener("toggle", (event) => {
    if (event.target.matches(".operation") && event.target.open) history.replaceState(null, "", `#${event.target.id}`);
  }, true);
  addEventListener("hashchange", openNamed);

  const warn = (...said) => {
    status.textContent = "";
    document.querySelector(".operations").replaceChildren(make("p", { class: "note", role: "alert" }, ...said));
  };
  const lock = () => warn("This bank was started with a control token: ",
    make("a", { href: document.body.dataset.console, text: "log in at the console" }), " to read this.");

  status.textContent = "Reading the document …";
  fetch(document.body.dataset.source, { headers: { Accept: "application/json" } })
    .then((answer) => {
      if (answer.status === 401) return lock();
      if (!answer.ok) throw new Error(`The bank answered ${answer.status}.`);
      return answer.json().then((source) => { draw(source); openNamed(); });
    })
    .catch((error) => warn(`The document could not be read. ${error.message}`));
})();
