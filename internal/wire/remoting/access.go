package remoting

// AuthCreateUserRequest is the header of AUTH_CREATE_USER.
type AuthCreateUserRequest struct {
	Username string
}

// Fields names the fields.
func (h *AuthCreateUserRequest) Fields(v *Visitor) {
	v.Name("username", &h.Username, Optional)
}

// AuthUpdateUserRequest is the header of AUTH_UPDATE_USER.
type AuthUpdateUserRequest struct {
	Username string
}

// Fields names the fields.
func (h *AuthUpdateUserRequest) Fields(v *Visitor) {
	v.Name("username", &h.Username, Optional)
}

// AuthDeleteUserRequest is the header of AUTH_DELETE_USER.
type AuthDeleteUserRequest struct {
	Username string
}

// Fields names the fields.
func (h *AuthDeleteUserRequest) Fields(v *Visitor) {
	v.Name("username", &h.Username, Optional)
}

// AuthGetUserRequest is the header of AUTH_GET_USER.
type AuthGetUserRequest struct {
	Username string
}

// Fields names the fields.
func (h *AuthGetUserRequest) Fields(v *Visitor) {
	v.Name("username", &h.Username, Optional)
}

// AuthListUserRequest is the header of AUTH_LIST_USER.
type AuthListUserRequest struct {
	Filter string
}

// Fields names the fields.
func (h *AuthListUserRequest) Fields(v *Visitor) {
	v.Name("filter", &h.Filter, Optional)
}

// AuthCreateACLRequest is the header of AUTH_CREATE_ACL.
type AuthCreateACLRequest struct {
	Subject string
}

// Fields names the fields.
func (h *AuthCreateACLRequest) Fields(v *Visitor) {
	v.Name("subject", &h.Subject, Optional)
}

// AuthUpdateACLRequest is the header of AUTH_UPDATE_ACL.
type AuthUpdateACLRequest struct {
	Subject string
}

// Fields names the fields.
func (h *AuthUpdateACLRequest) Fields(v *Visitor) {
	v.Name("subject", &h.Subject, Optional)
}

// AuthDeleteACLRequest is the header of AUTH_DELETE_ACL.
type AuthDeleteACLRequest struct {
	Subject    string
	PolicyType string
	Resource   string
}

// Fields names the fields.
func (h *AuthDeleteACLRequest) Fields(v *Visitor) {
	v.Name("subject", &h.Subject, Optional)
	v.Name("policyType", &h.PolicyType, Optional)
	v.Name("resource", &h.Resource, Optional)
}

// AuthGetACLRequest is the header of AUTH_GET_ACL.
type AuthGetACLRequest struct {
	Subject string
}

// Fields names the fields.
func (h *AuthGetACLRequest) Fields(v *Visitor) {
	v.Name("subject", &h.Subject, Optional)
}

// AuthListACLRequest is the header of AUTH_LIST_ACL.
type AuthListACLRequest struct {
	SubjectFilter  string
	ResourceFilter string
}

// Fields names the fields.
func (h *AuthListACLRequest) Fields(v *Visitor) {
	v.Name("subjectFilter", &h.SubjectFilter, Optional)
	v.Name("resourceFilter", &h.ResourceFilter, Optional)
}
