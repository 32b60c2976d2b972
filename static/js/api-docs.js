// Starts Swagger UI on the schema of this server, in the page's colours.
const root = document.documentElement;
const place = document.getElementById("swagger-ui");

// Swagger UI has dark colours of its own, under a class; theme-init.js says when.
const colour = () => root.classList.toggle("dark-mode", root.dataset.theme === "dark");
colour();
new MutationObserver(colour).observe(root, { attributeFilter: ["data-theme"] });

window.SwaggerUIBundle({
  url: place.dataset.schema,
  domNode: place,
  presets: [window.SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  requestInterceptor: (request) => {
    const isOurs = new URL(request.url, location.href).origin === location.origin;
    if (isOurs && (request.method || "GET") !== "GET") {
      request.headers[place.dataset.csrfHeader] = place.dataset.csrf;
    }
    return request;
  },
});
